package thread

import (
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/redact"
)

// Secrets finds secrets in the lines of pages, by the built-in rules that daemons mask with. It is safe for concurrent
// use. A nil *Secrets finds none: what it finds is for those who may have it masked.
type Secrets struct{ Masker *redact.Masker }

// For returns what finds secrets for a reader of a user's session: nothing, unless it is the reader's own or an owner
// reads.
func (s *Secrets) For(reader server.User, user int64) *Secrets {
	if reader.ID == user || reader.Role == server.Owner {
		return s
	}
	return nil
}

// SecretLine is a line of a page that holds secrets.
type SecretLine struct {
	Line  int64
	Rules []string // that found them, each once
	Link  string   // where all of the line is shown
}

// in returns the rules that find something in a line, each once, sorted.
func (s *Secrets) in(l server.Line) []string {
	if s == nil || l.Kind == server.Oversize {
		return nil
	}
	_, ranges := s.Masker.Line(l.Raw)
	var rules []string
	for _, r := range ranges {
		rules = append(rules, r.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// markSecrets notes what a line holds, and marks its last item, if it has one of its own. A result stands in the item
// of its call.
func (b *Builder) markSecrets(l StoredLine, items int) {
	var rules []string
	if b.Secrets != nil && !b.budget.Escapes(l.Raw) {
		rules = []string{"not searched, too many escapes"}
	} else {
		rules = b.Secrets.in(l.Line)
	}
	if rules == nil {
		return
	}
	link := b.base + b.stream.Path(fmt.Sprintf("/entry/%d", l.Index))
	b.SecretLines = append(b.SecretLines, SecretLine{l.Index, rules, link})
	if len(b.items) > items {
		b.items[len(b.items)-1].Secrets = rules
	}
}
