package load

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/protocol"
)

// What a daemon's requests hold at most: entries, and bytes of lines unless one line alone is longer.
const (
	mostEntries = 100
	mostBytes   = 512 << 10
)

// span is consecutive lines of a transcript in one request.
type span struct {
	generation, rewoundTo int
	line                  int
	offset                int64
	lines                 []string
}

func (s *span) bytes() (n int64) {
	for _, line := range s.lines {
		n += int64(len(line)) + 1
	}
	return n
}

// body is the request that carries a span of a session's lines.
func (s *span) body(of *corpus.Session) ([]byte, error) {
	newline := true
	x := protocol.Extension{
		StreamIdentity: protocol.StreamIdentity{Version: protocol.Version, Machine: of.Machine, Host: of.Host,
			Epoch: "e-1", Path: of.Path, Cwd: of.Cwd, Project: strings.SplitN(of.Path, "/", 2)[0]},
		Generation: int64(s.generation), RewoundTo: int64(s.rewoundTo),
		From: protocol.Position{Offset: s.offset, Line: int64(s.line)},
		To:   protocol.Position{Offset: s.offset + s.bytes(), Line: int64(s.line + len(s.lines))}, EOFNewline: &newline,
	}
	if of.Parent != "" {
		x.Parent = &of.Parent
	}
	about, err := json.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", of.ID, err)
	}
	b := make([]byte, 0, s.bytes()+int64(40*len(s.lines))+1024)
	b = append(b, `{"project_hash":`...)
	b = strconv.AppendQuote(b, of.Project)
	b = append(b, `,"session_id":`...)
	b = strconv.AppendQuote(b, of.ID)
	b = append(b, `,"entries":[`...)
	for i, line := range s.lines {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEntry(b, s.line+i, line)
	}
	b = append(append(append(b, `],"ccship":`...), about...), '}')
	return b, nil
}

// appendEntry appends a line with its number in front; what is no JSON object goes as it is, in base64.
func appendEntry(b []byte, n int, line string) []byte {
	b = append(b, `{"line_index":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}") || !json.Valid([]byte(line)) {
		b = append(b, `,"type":"ccship.opaque","encoding":"base64","data":"`...)
		return append(base64.StdEncoding.AppendEncode(b, []byte(line)), '"', '}')
	}
	if rest := strings.TrimLeft(line[1:], " \t"); rest != "}" {
		b = append(b, ',')
	}
	return append(b, line[1:]...)
}

var encoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(512<<10), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("zstd options: " + err.Error()) // they are constants
	}
	return e
}}

// Pack compresses as a daemon does.
func Pack(dst, raw []byte) []byte {
	e := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(e)
	return e.EncodeAll(raw, dst)
}

// put sends a span and demands that the server has stored it.
func (c *Client) put(ctx context.Context, of *corpus.Session, s *span) error {
	body, err := s.body(of)
	if err != nil {
		return err
	}
	text, err := c.do(ctx, "POST", "/api/conversations", Pack(nil, body), "zstd")
	if err != nil {
		return err
	}
	var answer struct{ Success bool }
	if err := json.Unmarshal(text, &answer); err != nil || !answer.Success {
		return fmt.Errorf("lines of %s: %.200q, %w", of.ID, text, err)
	}
	return nil
}
