"""Tools that explain one fitted GP, with the same rows and baseline, and the true answers."""
