package corpus

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// quote appends a text as a JSON string, in the way of JSON.stringify: only what must be is escaped.
func quote(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text) // what is no UTF-8 is replaced
	return dst
}

// object builds one JSON object member after member.
type object []byte

func newObject() object { return append(make(object, 0, 1024), '{') }

func (o object) raw(name, value string) object {
	if o[len(o)-1] != '{' {
		o = append(o, ',')
	}
	o = append(append(append(o, '"'), name...), '"', ':')
	return append(o, value...)
}

func (o object) text(name, value string) object { return quote(o.raw(name, ""), value) }

func (o object) number(name string, n int) object { return o.raw(name, strconv.Itoa(n)) }

func (o object) end() string { return string(append(o, '}')) }

func uuid(rng *rand.Rand) string {
	a, b := rng.Uint64(), rng.Uint64()
	const form = "%08x-%04x-4%03x-8%03x-%012x"
	return fmt.Sprintf(form, uint32(a), uint16(a>>32), uint16(a>>48)&0xfff, uint16(b)&0xfff, b>>16)
}

const letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789"

// token is an id as the vendor's: a prefix and n random letters.
func token(rng *rand.Rand, prefix string, n int) string {
	b := []byte(prefix)
	for range n {
		b = append(b, letters[rng.IntN(len(letters))])
	}
	return string(b)
}

// opaque is about n bytes that do not compress below the loss of base64: signatures and images.
func opaque(rng *rand.Rand, n int) string {
	b := make([]byte, n*3/4)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)
}

// around draws a length whose median is m: a few are much longer.
func around(rng *rand.Rand, m int, spread float64, longest int) int {
	return max(4, min(int(math.Exp(rng.NormFloat64()*spread)*float64(m)), longest))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// firstLines returns the first n lines of a text, and how many it has then.
func firstLines(text []byte, n int) ([]byte, int) {
	count := 0
	for i, c := range text {
		if c == '\n' {
			if count++; count == n {
				return text[:i+1], count
			}
		}
	}
	return text, count
}

// valid makes a piece of a file a valid text.
func valid(b []byte) string {
	for len(b) > 0 && !utf8.Valid(b) {
		b = b[:len(b)-1]
	}
	return string(b)
}
