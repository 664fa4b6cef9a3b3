"""Log evidences and their gradients, one module for each kind of model."""
