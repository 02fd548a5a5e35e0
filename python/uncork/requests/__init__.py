"""Options of the verbs, and the typed requests made from them; refusals name the option."""
