"""Patches of the kind that GPT models are trained on: `grammar` reads, `placing` places, `plan` plans them. Pure."""
