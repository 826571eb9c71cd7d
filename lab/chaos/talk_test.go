//go:build unix

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/ccship/ccship/e2e/kit"
)

// talk is one transcript that grows and is rewound.
type talk struct {
	session, path string
	rng           *rand.Rand
	n             int
}

func uuid(rng *rand.Rand) string {
	a, b := rng.Uint64(), rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(a), uint16(a>>32), uint16(a>>48)&0xfff, uint16(b)&0xfff, b>>16)
}

// newTalk begins a transcript of n lines.
func (r *room) newTalk(n int) *talk {
	r.t.Helper()
	c := r.talkAt(fmt.Sprintf("-work-%d", r.rng.IntN(4)), uuid(r.rng))
	c.add(r, n)
	return c
}

func (r *room) talkAt(folder, session string) *talk {
	r.t.Helper()
	path := filepath.Join(r.projects(), folder, session+".jsonl")
	kit.Must(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
	c := &talk{session: session, path: path, rng: rand.New(rand.NewPCG(r.rng.Uint64(), 5))}
	r.talks = append(r.talks, c)
	return c
}

// line is one record of about size bytes.
func (c *talk) line(size int) []byte {
	c.n++
	kind := "user"
	if c.n%2 == 0 {
		kind = "assistant"
	}
	var text bytes.Buffer
	for text.Len() < size-300 {
		fmt.Fprintf(&text, "%x 한 \\\"q\\\" ", c.rng.Uint64())
	}
	return fmt.Appendf(nil, `{"parentUuid":null,"isSidechain":false,"type":%q,"message":{"role":%q,"content":"%d %s"},`+
		`"uuid":%q,"timestamp":"2026-08-20T09:00:00.000Z","cwd":"/work/shop","sessionId":%q,"version":"2.1.235"}`+"\n",
		kind, kind, c.n, text.Bytes(), uuid(c.rng), c.session)
}

// add appends n lines, each with one write.
func (c *talk) add(r *room, n int) {
	r.t.Helper()
	for range n {
		kit.Must(r.t, appendTo(c.path, c.line(400+c.rng.IntN(1500))))
	}
}

func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// rewind cuts a transcript behind one of its lines and writes other ones.
func (c *talk) rewind(r *room) {
	r.t.Helper()
	data := kit.Try(os.ReadFile(c.path)).Must(r.t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	keep := len(bytes.Join(lines[:1+c.rng.IntN(len(lines)-1)], nil))
	kit.Must(r.t, os.Truncate(c.path, int64(keep)))
	c.add(r, 1+c.rng.IntN(6))
}

// write is what Claude Code does meanwhile: n lines, now and then a rewind or a new session.
func (r *room) write(n int) {
	r.t.Helper()
	for range n {
		c := r.talks[r.rng.IntN(len(r.talks))]
		switch p := r.rng.IntN(20); {
		case p == 0:
			c.rewind(r)
		case p == 1 && len(r.talks) < 40:
			r.newTalk(2)
		default:
			c.add(r, 1)
		}
	}
}
