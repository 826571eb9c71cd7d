package show

import (
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// shortID is how much of an id lists show.
const shortID = 8

// shortened are ids of items as long as it takes to tell them apart. An agent's, which has its session's in front,
// stays whole.
func shortened[T any](items []T, idOf func(*T) string) []string {
	ids, out := make([]string, len(items)), make([]string, len(items))
	for i := range items {
		ids[i] = idOf(&items[i])
	}
	for i, id := range ids {
		n := min(shortID, len(id))
		if strings.Contains(id, "/") {
			n = len(id)
		}
		for j, other := range ids {
			for i != j && other != id && n < len(id) && strings.HasPrefix(other, id[:n]) && !strings.HasPrefix(other, id+"/") {
				n++
			}
		}
		out[i] = term.Printable(id[:n])
	}
	return out
}
