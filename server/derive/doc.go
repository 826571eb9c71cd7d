// Package derive keeps the summary, the texts, the answers and the drops of every stream in step with the stored
// lines, and knows what tokens cost. It reads lines and stores derivations; it does not know who asks for them.
package derive
