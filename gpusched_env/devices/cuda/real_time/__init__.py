"""A GPU driven in compiled code, between decisions for an interval that another thread makes."""
