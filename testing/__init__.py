"""Sample inputs, references and checks for operators and plugins."""
