package redact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestExplain proves what was masked, whatever rules there are now.
func TestExplain(t *testing.T) {
	t.Parallel()
	old, now := masker(t, Rule{Name: "ours", Pattern: `ours_[a-z0-9]{12,}`, Literals: []string{"ours_"}}), masker(t)
	foreign := kit.Try(New(Key{9})).Must(t)
	filler := strings.Repeat("words ", 2000)
	disk := []byte(`{"a":"` + filler + `use ` + secret + ` and ours_k3j5h7g9k3j5h7g9k3j5, export DB_PASSWORD=ab12cd ` + filler + `\n"}`)
	held, ranges := old.Object(disk)
	kit.Require(t, len(ranges) == 3, "%v", ranges)
	e, ok := now.Explain(disk, held)
	kit.Check(t, ok && e == (Explanation{2, 1}), "%v %+v", ok, e)
	e, ok = now.Explain(disk, disk)
	kit.Check(t, ok && e == (Explanation{}), "no difference: %v %+v", ok, e)
	other := bytes.Replace(disk, []byte("EFGH"), []byte("EFGX"), 1)
	token := ranges[0]
	for name, c := range map[string]struct {
		m          *Masker
		disk, held []byte
	}{
		"another key":      {foreign, disk, held},
		"no key":           {nil, disk, held},
		"another secret":   {now, other, held},
		"shorter":          {now, disk, held[:len(held)-1]},
		"another word":     {now, disk, bytes.Replace(held, []byte("use"), []byte("USE"), 1)},
		"a wrong token":    {now, disk, wrongHash(held, token.Start)},
		"a token too many": {now, disk, append(bytes.Clone(held[:9]), append([]byte("[:aaaaaaaaaa]"), held[22:]...)...)},
		"many asterisks":   {now, disk, bytes.Replace(held, []byte("words words "), []byte("************"), 1)},
		"last byte":        {now, disk, append(bytes.Clone(held[:len(held)-1]), ']')},
	} {
		e, ok := c.m.Explain(c.disk, c.held)
		kit.Check(t, !ok, "%s is explained: %+v", name, e)
	}
	short := bytes.Replace(disk, []byte("ab12cd"), []byte("xy34zw"), 1)
	if e, ok := now.Explain(short, held); !ok || e.Unproven != 1 {
		t.Errorf("another short secret: %v %+v", ok, e)
	}
}

// wrongHash changes one character of a token's hash.
func wrongHash(held []byte, token int) []byte {
	b := bytes.Clone(held)
	at := token + bytes.IndexByte(b[token:], ':') + 3
	if b[at] == 'a' {
		b[at] = 'b'
	} else {
		b[at] = 'a'
	}
	return b
}

// FuzzExplain masks a text by the rules, which must explain it, and a text that was changed elsewhere, which they must not.
func FuzzExplain(f *testing.F) {
	m := masker(f)
	f.Add([]byte(`{"a":"\nAKIAQ3EGSDFKJ4KKAX2Z TOKEN=ab12cd \"ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234\""}`), 3)
	f.Add([]byte("DB_PASSWORD=ab12cd ***"), 0)
	f.Fuzz(func(t *testing.T, disk []byte, at int) {
		held, ranges := m.Line(disk)
		e, ok := m.Explain(disk, held)
		kit.Require(t, ok && e.Proven+e.Unproven <= len(ranges), "%q became %q, which is not explained: %+v, %v", disk, held, e, ranges)
		if len(held) == 0 {
			return
		}
		at = int(uint(at) % uint(len(held)))
		for _, r := range ranges {
			if at >= r.Start && at < r.End {
				return
			}
		}
		other := bytes.Clone(held)
		if other[at] = disk[at] ^ 1; other[at] == '*' {
			return
		}
		_, ok = m.Explain(disk, other)
		kit.Require(t, !ok, "%q is explained as %q", disk, other)
	})
}
