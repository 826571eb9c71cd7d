package lines

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func blockCodec(t testing.TB) *codec {
	t.Helper()
	return kit.Try(NewCodec()).Must(t)
}

func build(t testing.TB, c *codec, lines []Line) Block {
	t.Helper()
	return kit.Try(c.Build(lines)).Must(t)
}

func same(a, b Line) bool {
	return a.Index == b.Index && a.Received == b.Received && a.Kind == b.Kind && bytes.Equal(a.Raw, b.Raw)
}

// opened are a block's lines.
func opened(c *codec, b Block) ([]Line, error) {
	x, err := c.Open(&b)
	if err != nil {
		return nil, err
	}
	defer c.Release(x)
	var out []Line
	for i := range x.Entries {
		l := x.Line(i)
		l.Raw = bytes.Clone(l.Raw)
		out = append(out, l)
	}
	return out, nil
}

// some are lines of every sort: with gaps, empty ones, of different kinds and times, larger than a block.
func some() []Line {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	return []Line{
		{Index: 7, Received: 1_700_000_000_000_000, Raw: []byte(`{"a":1}`)},
		{Index: 8, Received: 1_700_000_000_000_000, Kind: 1, Raw: nil},
		{Index: 9, Received: 1_699_999_000_000_000, Kind: 2, Raw: []byte("note\r\x00\xff\n")},
		{Index: 1 << 40, Received: 0, Raw: []byte(strings.Repeat("the same again ", 20_000))},
		{Index: 1<<40 + 1, Received: -5, Raw: noise},
	}
}

func TestRoundTrip(t *testing.T) {
	c := blockCodec(t)
	for n := 1; n <= len(some()); n++ {
		want := some()[:n]
		b := build(t, c, want)
		got, err := opened(c, b)
		kit.Check(t, err == nil && slices.EqualFunc(got, want, same), "%d lines came back as %d others: %v", n, len(got), err)
		kit.Check(t, b.First == 7 && b.Last == want[n-1].Index && b.Lines == int64(n),
			"the block of %d lines is from %d to %d, with %d", n, b.First, b.Last, b.Lines)
	}
}

func TestRefuses(t *testing.T) {
	c := blockCodec(t)
	for name, lines := range map[string][]Line{
		"nothing": nil, "twice": {{Index: 1}, {Index: 1}}, "descending": {{Index: 2}, {Index: 1}},
		"negative": {{Index: -1}}, "unknown kind": {{Kind: 4}},
	} {
		_, err := c.Build(lines)
		kit.Check(t, err != nil, "%s: a block was built", name)
	}
}

// TestDamage: whatever single bit of a block changes is noticed.
func TestDamage(t *testing.T) {
	c := blockCodec(t)
	b := build(t, c, some()[:4])
	whole := func(x Block, what string) { kit.Err(t, what, errDamaged)(opened(c, x)) }
	for name, at := range map[string]func(*Block) *[]byte{
		"hash":   func(b *Block) *[]byte { return &b.SHA256 },
		"header": func(b *Block) *[]byte { return &b.Header },
		"data":   func(b *Block) *[]byte { return &b.Data },
	} {
		for i := range *at(&b) {
			x := b
			p := at(&x)
			*p = bytes.Clone(*p)
			(*p)[i] ^= 1 << (i % 8)
			whole(x, fmt.Sprintf("%s, byte %d", name, i))
			_, err := x.Index()
			kit.Check(t, name != "header" || errors.Is(err, errDamaged), "header, byte %d: its index was read: %v", i, err)
			x = b
			*at(&x) = (*at(&b))[:i]
			whole(x, fmt.Sprintf("%s, cut to %d", name, i))
		}
	}
	for i, at := range []func(*Block) *int64{
		func(b *Block) *int64 { return &b.First }, func(b *Block) *int64 { return &b.Last },
		func(b *Block) *int64 { return &b.Lines }, func(b *Block) *int64 { return &b.RawBytes },
	} {
		x := b
		*at(&x)++
		whole(x, fmt.Sprint("number ", i))
	}
}

// TestCut: nothing is lost or moved, and blocks are about as large as they should be.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		var lines []Line
		largest := 0
		for i := range r.IntN(400) {
			n := r.IntN(3000)
			if r.IntN(50) == 0 {
				n = r.IntN(400 << 10)
			}
			largest = max(largest, n)
			lines = append(lines, Line{Index: int64(i), Raw: make([]byte, n)})
		}
		var all []Line
		for _, piece := range cutBlock(lines) {
			size := 0
			for _, l := range piece {
				size += len(l.Raw)
			}
			kit.Require(t, len(piece) != 0 && (len(piece) <= 1 || size <= 2*blockSize+largest),
				"round %d: a piece of %d lines has %d bytes", round, len(piece), size)
			all = append(all, piece...)
		}
		kit.Require(t, slices.EqualFunc(all, lines, same), "round %d: the pieces are not the lines", round)
	}
	got := cutBlock([]Line{{Raw: make([]byte, 3*blockSize)}, {Index: 1, Raw: []byte("x")}})
	kit.Check(t, len(got) <= 2, "%d pieces of two lines", len(got))
}

// FuzzOpen: no bytes make the codec panic or give lines that were not put in.
func FuzzOpen(f *testing.F) {
	c := blockCodec(f)
	b := build(f, c, some()[:3])
	f.Add(b.Header, b.Data, b.First, b.Last, b.Lines, b.RawBytes)
	f.Fuzz(func(t *testing.T, header, data []byte, first, last, lines, raw int64) {
		x := Block{First: first, Last: last, Lines: lines, RawBytes: raw, SHA256: b.SHA256, Header: header, Data: data}
		if entries, err := x.Index(); err == nil && int64(len(entries)) != lines {
			t.Errorf("%d entries of %d lines", len(entries), lines)
		}
		got, err := opened(c, x)
		if err != nil {
			return
		}
		want := some()[:3]
		kit.Check(t, slices.EqualFunc(got, want, same), "the hash is right, and the lines are %v", got)
	})
}

// FuzzLines: whatever lines go in come out.
func FuzzLines(f *testing.F) {
	c := blockCodec(f)
	f.Add([]byte("a\nbb\n\nccc"), int64(3), int64(5))
	f.Fuzz(func(t *testing.T, text []byte, first, received int64) {
		var lines []Line
		for i, raw := range bytes.Split(text, []byte("\n")) {
			lines = append(lines, Line{Index: first + int64(i*(1+len(raw)%3)), Received: received * int64(len(raw)%2),
				Kind: uint8(len(raw) % 3), Raw: raw})
		}
		b, err := c.Build(lines)
		if err != nil {
			return
		}
		got, err := opened(c, b)
		kit.Check(t, err == nil && slices.EqualFunc(got, lines, same), "%v came back as %v: %v", lines, got, err)
	})
}

func TestFolder(t *testing.T) {
	contract(t, "file://"+filepath.ToSlash(filepath.Join("/", t.TempDir(), "new", "place")))
}

// TestBucket is the contract on the S3-compatible storage that CCSHIP_TEST=s3=URL names, as --blocks does, or on the
// program that versitygw= is.
func TestBucket(t *testing.T) {
	at, program := kit.Setting("s3", ""), kit.Setting("versitygw", "")
	switch {
	case at != "":
	case program != "":
		at = gateway(t, program)
	default:
		t.Skip("lab cold runs it")
	}
	contract(t, at)
}

// gateway starts an S3 server on a folder of its own.
func gateway(t *testing.T, program string) string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secretsecret")
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	kit.Must(t, err)
	address, dir := ln.Addr().String(), t.TempDir()
	kit.Must(t, errors.Join(ln.Close(), os.Mkdir(filepath.Join(dir, "bucket"), 0o700)))
	cmd := exec.CommandContext(t.Context(), program, "--port", address, "posix", dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=user", "ROOT_SECRET_KEY=secretsecret")
	kit.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // killed when the test ended
	for end := time.Now().Add(5 * time.Minute); ; {
		answer, err := http.Get("http://" + address)
		if err == nil {
			_ = answer.Body.Close()
			return "s3://bucket/ccship?lookup=path&region=us-east-1&endpoint=http://" + address
		}
		kit.Require(t, !time.Now().After(end), "the S3 server does not answer: %v", err)
		<-time.After(20 * time.Millisecond)
	}
}

func contract(t *testing.T, at string) {
	t.Helper()
	ctx := t.Context()
	s := kit.Try(openObjects(at)).Must(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10)
	for name, data := range map[string][]byte{"id/1/s2/A": []byte("x"), "id/1/s2/B": big, "id/1/f2/A": {0}} {
		kit.Err(t, name+" before it is written", errNoObject)(s.Get(ctx, name, 9))
		kit.Err(t, fmt.Sprintf("remove %s before it is written", name), nil)(s.Delete(ctx, name))
		for range 2 {
			kit.Must(t, s.Put(ctx, name, data))
		}
		got, err := s.Get(ctx, name, int64(len(data))+1)
		kit.Check(t, err == nil && bytes.Equal(got, data), "%s has %d bytes, want %d: %v", name, len(got), len(data), err)
	}
	got, err := s.Get(ctx, "id/1/s2/B", 5)
	kit.Check(t, err == nil && string(got) == "01234", "cut to 5 bytes: %q, %v", got, err)
	kit.Must(t, s.Delete(ctx, "id/1/s2/A"))
	kit.Err(t, "after it was removed", errNoObject)(s.Get(ctx, "id/1/s2/A", 9))
	got, err = s.Get(ctx, "id/1/s2/B", 1)
	kit.Check(t, err == nil && len(got) == 1, "its neighbour: %v", err)
	for _, name := range []string{"id/1/s2/B", "id/1/f2/A"} {
		kit.Should(t, s.Delete(ctx, name))
	}
}

func TestAddresses(t *testing.T) {
	for _, good := range []string{"s3://bucket", "s3://bucket/a/b?region=eu-1", "file:///srv/cold",
		"s3://bucket/p?endpoint=http://127.0.0.1:9000&lookup=path"} {
		kit.Err(t, good, nil)(CheckBlocks(good))
	}
	for bad, why := range map[string]string{
		"": "want s3://", "/srv": "want s3://", "http://x/y": "want s3://", "file:///": "absolute", "file://srv/x": "absolute",
		"s3:///p": "bucket is missing", "s3://b?x=1": "the options are endpoint", "s3://b?endpoint=host": "no address",
		"s3://key:secret@b": "AWS_ACCESS_KEY_ID", "secret@key": "want s3://", "AKIA:secret@/b": "want s3://", "s3://b?secret@=x": "the options are",
		"s3://b?endpoint=https://u:secret@h": "no address", "s3://b?lookup=secret@": "path or host", "s3://b?lookup=no": "path or host",
	} {
		err := CheckBlocks(bad)
		kit.Check(t, errors.Is(err, ErrBadBlocks) && strings.Contains(err.Error(), why) &&
			!strings.Contains(err.Error(), "secret@"), "%q: %v, want %q", bad, err, why)
	}
}

// TestCacheLarge: an object that is larger than the cache stays until another one comes: a transaction that brought it
// finds it when it begins again.
func TestCacheLarge(t *testing.T) {
	c := newCache(10)
	for _, o := range []struct {
		id   string
		size int
		kept string
	}{{"a", 4, "a"}, {"b", 5, "ab"}, {"large", 20, "large"}, {"c", 6, "c"}, {"d", 4, "cd"}} {
		c.add(o.id, make([]byte, o.size))
		kept := ""
		for _, id := range []string{"a", "b", "large", "c", "d"} {
			if data, ok := c.find(id); ok && len(data) > 0 {
				kept += id
			}
		}
		kit.Equal(t, "kept with "+o.id, kept, o.kept)
	}
}
