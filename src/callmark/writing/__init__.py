"""Everything that goes to a model as text: calls, results, neutralized content, the protocol prompt, grammars."""
