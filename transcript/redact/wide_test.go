package redact

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ccship/ccship/e2e/kit"
)

// orders are the encodings that Windows programs write.
var orders = map[string]struct {
	mark string
	with binary.AppendByteOrder
}{
	"LE": {"", binary.LittleEndian}, "LE with a mark": {"\xff\xfe", binary.LittleEndian},
	"BE": {"", binary.BigEndian}, "BE with a mark": {"\xfe\xff", binary.BigEndian},
}

// inUTF16 encodes a text.
func inUTF16(text string, with binary.AppendByteOrder) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = with.AppendUint16(b, u)
	}
	return b
}

// fromUTF16 decodes a text, which must hold no half of a pair.
func fromUTF16(t testing.TB, b []byte, with binary.AppendByteOrder) string {
	t.Helper()
	var units []uint16
	for i := 0; i+1 < len(b); i += 2 {
		units = append(units, with.(binary.ByteOrder).Uint16(b[i:]))
	}
	text := string(utf16.Decode(units))
	kit.Check(t, !strings.ContainsRune(text, '\ufffd'), "no UTF-16 any more: %q", text)
	return text
}

// TestWideFiles masks UTF-16 as the same text in UTF-8, with the same tokens, however it is read.
func TestWideFiles(t *testing.T) {
	m := parallel(t)
	key := "-----BEGIN PRIVATE KEY-----\r\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B\r\n", 90) + "-----END PRIVATE KEY-----\r\n"
	for name, text := range map[string]string{
		"a key":       "TOKEN=" + secret + "\r\n",
		"a long file": strings.Repeat("some words, line after line\r\n", 20_000) + secret + "\r\n" + key + "\r\nend",
		"a page":      "Schlüssel für Jürgen:\r\n" + strings.Repeat("Ключ от сервера, two words\r\n", 400) + secret + "\r\n",
		"short":       "some words\r\nexport DB_PASSWORD=ab12cd\r\nand more of them\r\n",
		"escaped":     `{"a":"line\nAKIAQ3EGSDFKJ4KKAX2Z\\n"}` + strings.Repeat(" and words", 9),
	} {
		want := masker(t).String(text)
		for order, o := range orders {
			b := append([]byte(o.mark), inUTF16(text, o.with)...)
			whole, ranges := m.File("x.md", b)
			kit.Check(t, len(whole) == len(b) && fromUTF16(t, whole[len(o.mark):], o.with) == want && len(ranges) != 0,
				"%s in UTF-16 %s: %d ranges, %.200q", name, order, len(ranges), whole)
			r := m.ReaderAt("x.md", bytes.NewReader(b), int64(len(b)))
			again := read(t, r, len(b), 99_991)
			kit.Check(t, bytes.Equal(again, whole), "%s in UTF-16 %s, in pieces: it is another", name, order)
			again, ranges = m.File("x.md", whole)
			kit.Check(t, bytes.Equal(again, whole) && len(ranges) == 0, "%s in UTF-16 %s: masked again", name, order)
			checkWide(t, m, b, whole)
			odd := append(bytes.Clone(b), 'x')
			out, _ := m.File("x.md", odd)
			kit.Check(t, string(out) == string(whole)+"x", "%s in UTF-16 %s, of an odd length: %.200q", name, order, out)
		}
	}
}

// checkWide proves a masked text, and puts its tokens in place as a server does.
func checkWide(t testing.TB, m *Masker, disk, held []byte) {
	t.Helper()
	e, ok := m.Explain(disk, held)
	kit.Check(t, ok && e != (Explanation{}), "%.100q is not explained: %+v", held, e)
	if foreign, err := New(Key{9}); err == nil && bytes.Contains(held, []byte(":\x00")) {
		_, ok := foreign.Explain(disk, held)
		kit.Check(t, !ok, "%.100q is explained by another key", held)
	}
	list, only := Changes(disk, held)
	sent, err := json.Marshal(list)
	kit.Require(t, err == nil && only && len(list) != 0 && json.Unmarshal(sent, &list) == nil, "%v %v %s", only, err,
		sent)
	out, err := Overlay(disk, list)
	kit.Check(t, err == nil && bytes.Equal(out, held), "%s gives %.100q, %v", sent, out, err)
	kit.Check(t, HasTokens(held), "%.100q has no tokens", held)
}

// TestWideSecrets masks secrets that are more than ASCII: they may begin, end and be full of characters of two bytes
// and of two units.
func TestWideSecrets(t *testing.T) {
	m := parallel(t)
	for _, password := range []string{
		"Жb1cd2e3f4g5h6", "Äb1cd2e3f4g5h6Ж", "b1cd2Жe3f4g5h6", "😀b1cd2e3f4g5h6😀", "Ж1bЖcd", "a1ЖЖbc", "Жa1bcd", "a1bcdЖ", "*Ж1bc*",
	} {
		var tokens []string
		for order, o := range orders {
			b := append([]byte(o.mark), inUTF16("some words\r\nDB_PASSWORD="+password+"\r\nand more words Ж", o.with)...)
			out, ranges := m.File("x", b)
			text := fromUTF16(t, out[len(o.mark):], o.with)
			if len(ranges) != 1 || strings.Contains(text, "1b") || strings.Contains(text, "b1") {
				t.Errorf("%s, %s: %v, %q", password, order, ranges, text)
				continue
			}
			tokens = append(tokens, text)
			checkWide(t, m, b, out)
			other := bytes.Clone(b)
			at := ranges[0].Start + len(password)/2&^1
			if other[at] ^= 1; ranges[0].Proven {
				_, ok := m.Explain(other, out)
				kit.Check(t, !ok, "%s, %s: another secret is explained", password, order)
			}
		}
		for _, text := range tokens {
			kit.Check(t, text == tokens[0], "%q and %q", text, tokens[0])
		}
	}
}

// TestWidePairs: a rule that ends or begins within a character of two units masks all of it.
func TestWidePairs(t *testing.T) {
	m := parallel(t, Rule{Name: "ours", Pattern: `ours:.(.{12})`, Literals: []string{"ours:"}})
	for order, o := range orders {
		in := append([]byte(o.mark), inUTF16("many words ours:😀 ten more 😀 and more words", o.with)...)
		out, ranges := m.File("x", in)
		text := fromUTF16(t, out[len(o.mark):], o.with)
		kit.Check(t, len(ranges) == 1 && !strings.Contains(text, "😀") && strings.HasSuffix(text, "] and more words"),
			"%s: %q, %v", order, text, ranges)
	}
}

// TestWideLines masks lines of UTF-16, which are cut behind the byte of a newline, and what is appended in UTF-16 to a
// file of another encoding.
func TestWideLines(t *testing.T) {
	m := parallel(t)
	for order, o := range orders {
		text := append([]byte(o.mark), inUTF16("TOKEN="+secret+"\r\nTOKEN="+secret+"\r\nTOKEN="+secret+"\r\n", o.with)...)
		var all []byte
		for _, line := range bytes.Split(text, []byte("\n")) {
			out, _ := m.Line(line)
			all = append(append(all, out...), '\n')
			if len(line) > 9 {
				checkWide(t, m, line, out)
			}
		}
		out := fromUTF16(t, all[len(o.mark):len(all)-1], o.with)
		kit.Check(t, !strings.Contains(out, "ghp_") && strings.Count(out, "[github:") == 3, "%s: %q", order, out)
		mixed := append([]byte("# written by another program, für alle\n"), inUTF16("TOKEN="+secret, o.with)...)
		for _, end := range []string{"", "\n\x00", "\x00\n", "words"} {
			in := append(bytes.Clone(mixed), end...)
			out, ranges := m.File("x", in)
			if len(ranges) != 1 || bytes.Contains(out, []byte("g\x00h\x00p\x00_")) || !bytes.HasPrefix(out, in[:41]) {
				t.Errorf("%s, appended, then %q: %v, %q", order, end, ranges, out)
				continue
			}
			checkWide(t, m, in, out)
			again, ranges := m.File("x", out)
			kit.Check(t, len(ranges) == 0, "%s: masked again: %q", order, again)
		}
	}
}

// TestNotWide leaves files with many zeros alone: nothing in them is UTF-16, although some of it may look so.
func TestNotWide(t *testing.T) {
	m := parallel(t)
	png := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00"), bytes.Repeat([]byte{0, 1, 0, 0}, 3000)...)
	samples := []byte{}
	for i := range 6000 {
		samples = binary.LittleEndian.AppendUint16(samples, uint16(i%900-450))
	}
	counts := []byte{}
	for i := range 6000 {
		counts = binary.LittleEndian.AppendUint16(counts, uint16(i%250))
	}
	hidden := inUTF16("TOKEN="+secret, binary.LittleEndian)
	for name, b := range map[string][]byte{
		"PNG": png, "samples": samples, "counts": counts, "MZ": []byte("MZ\x90\x00\x03\x00\x00\x00\x04\x00\xff\xff\x00\x00"),
		"a mark only": []byte("\xff\xfe\xff\xff\x00\xdc\x00\x00"), "random": bytes.Repeat([]byte("\xff\xfe\x9a\xdd\x00\x41"), 2000),
	} {
		in := append(bytes.Clone(b), hidden...)
		out, ranges := m.File("x", in)
		kit.Check(t, bytes.Equal(out, in) && len(ranges) == 0, "%s has changed: %v", name, ranges)
		r := bytes.NewReader(in)
		kit.Check(t, m.ReaderAt("x", r, int64(len(in))) == r, "%s is read as text", name)
	}
	for name, in := range map[string][]byte{
		"UTF-32": []byte("\xff\xfe\x00\x00a\x00\x00\x00b\x00\x00\x00"), "empty": {}, "one byte": {0xff}, "a mark": {0xfe, 0xff},
		"zeros": make([]byte, 9), "a list": []byte("one\x00two\x00three words of many\x00"),
	} {
		out, ranges := m.File("x", in)
		kit.Check(t, bytes.Equal(out, in) && len(ranges) == 0, "%s has changed: %q", name, out)
	}
}

// TestWideTokens: a token in UTF-16 has no position in a text that is not.
func TestWideTokens(t *testing.T) {
	t.Parallel()
	token := "[a:" + strings.Repeat("b", 10) + "]"
	text := bytes.Repeat([]byte("words "), 20)
	for order, o := range orders {
		wide := string(inUTF16(token, o.with))
		_, err := Overlay(text, []Token{{0, wide}})
		kit.Check(t, err != nil, "%s: a text has zeros in it", order)
		for _, bad := range []string{wide[1:], wide[2:], wide + "x\x00", strings.ReplaceAll(wide, "\x00", "\x01"), wide + wide} {
			kit.Check(t, CheckTokens([]Token{{0, bad}}, 1000) != nil, "%s: %q is a token", order, bad)
		}
		err = CheckTokens([]Token{{0, wide}, {len(wide), string(inUTF16("****", o.with))}}, 1000)
		kit.Check(t, err == nil, "%s: %v", order, err)
	}
}

// FuzzFile masks files of any kind. They keep their lengths, and all bytes outside of ranges; a second time nothing
// changes; the key explains the result, and a server can put it in place.
func FuzzFile(f *testing.F) {
	m := masker(f)
	for _, o := range orders {
		f.Add(append([]byte(o.mark), inUTF16("DB_PASSWORD=Жb1cd2e3 TOKEN="+secret+"\r\nPASSWORD=ab12cd", o.with)...))
		f.Add(append([]byte("TOKEN="+secret+"\nwords\n"), inUTF16("TOKEN="+secret, o.with)...))
	}
	f.Add([]byte("HOME=/root\x00TOKEN=" + secret + "\x00"))
	f.Fuzz(func(t *testing.T, disk []byte) {
		held, ranges := m.File("x", disk)
		kit.Require(t, len(held) == len(disk), "%q became %q", disk, held)
		last := 0
		for _, r := range ranges {
			kit.Require(t, r.Start <= last || bytes.Equal(held[last:r.Start], disk[last:r.Start]), "%q became %q: %v", disk,
				held, ranges)
			last = max(last, r.End)
		}
		kit.Require(t, bytes.Equal(held[last:], disk[last:]), "%q became %q: %v", disk, held, ranges)
		again, _ := m.File("x", held)
		kit.Require(t, bytes.Equal(again, held), "masked again: %q, %q, %q", disk, held, again)
		_, ok := m.Explain(disk, held)
		kit.Require(t, ok, "%q became %q, which is not explained: %v", disk, held, ranges)
		list, only := Changes(disk, held)
		out, err := Overlay(disk, list)
		kit.Require(t, only && err == nil && bytes.Equal(out, held), "%q became %q by %v: %v", disk, out, list, err)
	})
}
