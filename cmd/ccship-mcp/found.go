package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// found is what `ccship search --json` prints, as much of it as is shown.
type found struct {
	Sessions []struct {
		Session, User, Project, Title string
		Gone                          *string `json:"gone_session"`
		Missing                       []string
		Hits                          []struct {
			Line    int64
			Kind    string
			Current bool
			At      *time.Time
			Snippet []struct{ Text string }
		}
	}
	Total      int64
	Missing    []string
	Notes      []string
	Incomplete bool
}

// foundBytes is how long an answer is, in bytes: at most 1 000 tokens, with what stands before it.
const foundBytes = 2400

// foundText shows what a search found, each line with its session and number. Sessions without space are counted.
func foundText(out []byte) (string, error) {
	var f found
	if err := json.Unmarshal(out, &f); err != nil {
		return "", fmt.Errorf("read what was found: %w", err)
	}
	var b strings.Builder
	for _, note := range f.Notes {
		fmt.Fprintf(&b, "note: %s\n", cut(note, 200))
	}
	if len(f.Missing) > 0 {
		fmt.Fprintf(&b, "no session has all words; the best lacks: %s\n", cut(strings.Join(f.Missing, ", "), 200))
	}
	shown := 0
	for _, x := range f.Sessions {
		one := fmt.Sprintf("session %s (%s, %s) %q", cut(x.Session, 200), cut(x.User, 40), cut(x.Project, 40),
			cut(x.Title, 100))
		if x.Gone != nil {
			one = fmt.Sprintf("prompt history of %s; only prompts are left of %s", cut(x.User, 40), cut(*x.Gone, 40))
		}
		if len(x.Missing) > 0 {
			one += " without " + cut(strings.Join(x.Missing, ", "), 60)
		}
		for _, h := range x.Hits {
			text := ""
			for _, p := range h.Snippet {
				text += p.Text
			}
			one += fmt.Sprintf("\n  line %d, %s", h.Line+1, cut(h.Kind, 20))
			if h.At != nil {
				one += h.At.Format(", 2006-01-02")
			}
			if !h.Current {
				one += ", rewound since"
			}
			one += ": " + cut(text, 220)
		}
		if b.Len()+len(one) > foundBytes && shown > 0 {
			break
		}
		b.WriteString(cut(one, foundBytes) + "\n")
		shown++
	}
	if more := f.Total - int64(shown); more > 0 || f.Incomplete {
		fmt.Fprintf(&b, "%d further sessions, or more: narrow the text, for example with project: or after:\n", max(more, 0))
	}
	return cmp.Or(strings.TrimSpace(b.String()), "nothing found"), nil
}

// cut shortens a text to so many bytes, and to one line unless it is long.
func cut(text string, most int) string {
	if most < foundBytes {
		text = strings.Join(strings.Fields(text), " ")
	}
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// maxLine bounds a message, in bytes without its newline.
const maxLine = 16 << 20

// errLong is a line longer than maxLine.
var errLong = errors.New("line too long")

// lines is a transport of one JSON-RPC message a line. The SDK's own ends the session at the first line that is no
// message; here JSON-RPC's rule holds: such a line is answered with an error, and the next one is read.
type lines struct {
	in  io.Reader
	out io.Writer // gets each message in one Write
}

// Connect implements mcp.Transport. The reading ends with in, or with the program.
func (l *lines) Connect(context.Context) (mcp.Connection, error) {
	c := &lineConn{out: l.out, incoming: make(chan incoming), closed: make(chan struct{})}
	go c.run(bufio.NewReaderSize(l.in, 64<<10))
	return c, nil
}

// lineConn implements mcp.Connection. Safe for concurrent use.
type lineConn struct {
	incoming chan incoming // unbuffered: no line is read ahead of the server
	closed   chan struct{}
	once     sync.Once // closes closed

	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// incoming is a message, or what the reading ended with.
type incoming struct {
	message jsonrpc.Message
	err     error
}

func (c *lineConn) SessionID() string { return "" }

func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read answers the next message, or io.EOF after the last one and after Close.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case in := <-c.incoming:
		return in.message, in.err
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *lineConn) Write(ctx context.Context, message jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return c.writeLine(b)
}

func (c *lineConn) writeLine(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(b, '\n'))
	return err
}

// run reads lines until there are no more, or the connection is closed.
func (c *lineConn) run(in *bufio.Reader) {
	for {
		line, err := readLine(in)
		message, bad := decodeLine(line)
		if errors.Is(err, errLong) {
			bad, err = tooLong, nil
		}
		if bad != nil {
			err = errors.Join(err, c.writeLine(bad.answer()))
		}
		if message != nil && !c.pass(incoming{message: message}) {
			return
		}
		if err != nil {
			c.pass(incoming{err: err})
			return
		}
	}
}

// pass hands something to Read; false when the connection is closed.
func (c *lineConn) pass(in incoming) bool {
	select {
	case c.incoming <- in:
		return true
	case <-c.closed:
		return false
	}
}

// readLine reads a line, without its newline. A longer one than maxLine is passed over: errLong. The last one may come
// with io.EOF.
func readLine(in *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine+1; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong
		default:
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

// badLine is why a line is refused.
type badLine struct {
	code    int
	message string
	id      json.RawMessage // of the request that it would be; nil: unknown
}

var tooLong = &badLine{jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message is at most %d bytes long", maxLine), nil}

// answer returns the error as JSON-RPC has it.
func (b *badLine) answer() []byte {
	id := b.id
	if id == nil {
		id = json.RawMessage("null")
	}
	message, _ := json.Marshal(b.message) // a string
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, b.code, message)
}

// decodeLine reads a message. Neither one nor an error: there is nothing to do.
func decodeLine(line []byte) (jsonrpc.Message, *badLine) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil, nil
	}
	if !json.Valid(line) {
		return nil, &badLine{jsonrpc.CodeParseError, "the line is not one JSON value", nil}
	}
	var members map[string]json.RawMessage
	if line[0] != '{' || json.Unmarshal(line, &members) != nil {
		return nil, &badLine{jsonrpc.CodeInvalidRequest, "a message is an object; batches are not taken", nil}
	}
	id, asked := members["id"], members["method"] != nil
	if asked && !validID(id) {
		return nil, &badLine{jsonrpc.CodeInvalidRequest, "an id is a string or a whole number", nil}
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err == nil {
		return message, nil
	}
	if !asked && (members["result"] != nil || members["error"] != nil) {
		return nil, nil // a bad answer: two programs that answered such would never stop
	}
	if !asked {
		id = nil
	}
	return nil, &badLine{jsonrpc.CodeInvalidRequest, err.Error(), id}
}

// validID says whether an id is answered as it was given: a string, or a number that a float64 holds exactly. A
// notification has none (nil, or null).
func validID(id json.RawMessage) bool {
	const exact = 1 << 53
	if len(id) == 0 || id[0] == '"' || string(id) == "null" {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && -exact < n && n < exact
}
