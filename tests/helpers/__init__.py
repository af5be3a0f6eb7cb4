"""What tests of more than one folder share; what only one folder needs lies in it."""
