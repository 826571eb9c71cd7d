package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat(`if err != nil {\n\treturn fmt.Errorf(\"read %w\", err)\n}\nSome prose that goes on for a while. `, 16)
	var body bytes.Buffer
	body.WriteString(`{"session_id":"s","project_hash":"p","entries":[`)
	for i := range 100 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"line_index":%d,"type":"user","uuid":"5f0c0b4e-%d","message":{"content":"%s"}}`, i, i, text)
	}
	body.WriteString(`]}`)
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseLines(body.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
