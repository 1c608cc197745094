"""CoAst: a client's round is worth how well it agrees with where the model moves next."""
