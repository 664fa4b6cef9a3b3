"""Models of GPJax and tinygp."""
