package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// lines are of the kinds and about the sizes that make up a transcript.
func benchLines() map[string][]byte {
	head := `{"parentUuid":"5f0c1a52-1c5b-4a0e-9d0d-0f6f5f1c2b3a","isSidechain":false,"userType":"external","cwd":"/home/kim/shop",` +
		`"sessionId":"1c0e9b1e-7a51-4f9e-8a42-91d2f0a3c4d5","version":"2.1.328","gitBranch":"main","type":"%s","message":`
	tail := `,"uuid":"8d7c6b5a-4f3e-4d2c-9b1a-0f9e8d7c6b5a","timestamp":"2026-11-20T10:00:00.000Z"}`
	usage := `{"model":"claude","id":"msg_1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read",` +
		`"input":{"file_path":"/home/kim/shop/main.go","offset":120,"limit":40}}],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":4,"cache_creation_input_tokens":1184,"cache_read_input_tokens":18522,"output_tokens":3}}`
	code := strings.Repeat(`\tif err := f.Close(); err != nil {\n\t\treturn fmt.Errorf(\"close: %w\", err)\n\t}\n`, 100)
	prose := strings.Repeat(`The outbox is durable: place and outbox move in one transaction, so a crash repeats but never loses. `, 40)
	korean := strings.Repeat(`대화 히스토리는 서버에 저장되고, 되감기가 있어도 잃지 않는다. `, 60)
	result := `{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"%s"}]}`
	line := func(typ, message string) []byte { return []byte(fmt.Sprintf(head, typ) + message + tail) }
	return map[string][]byte{
		"tool use":   line("assistant", usage),
		"code":       line("user", fmt.Sprintf(result, code)),
		"prose":      line("assistant", `{"role":"assistant","content":[{"type":"text","text":"`+prose+`"}]}`),
		"Korean":     line("assistant", `{"role":"assistant","content":[{"type":"text","text":"`+korean+`"}]}`),
		"image 1 MB": line("user", fmt.Sprintf(result, strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 44000))),
	}
}

func BenchmarkScan(b *testing.B) {
	for name, line := range benchLines() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if Scan(line).Shape != Object {
					b.Fatal("not a record")
				}
			}
		})
	}
}

// BenchmarkValid is the floor that a loop without ccship pays: encoding/json.
func BenchmarkValid(b *testing.B) {
	for name, line := range benchLines() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if !json.Valid(line) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

func BenchmarkRestoreEntry(b *testing.B) {
	for name, line := range benchLines() {
		entry := AppendEntry(nil, line, Scan(line), 12345)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(entry)))
			b.ReportAllocs()
			for b.Loop() {
				if _, raw, _, err := RestoreEntry(entry); err != nil || len(raw) != len(line) {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestScanAllocates: Scan allocates for ordinary lines only what its documentation says.
func TestScanAllocates(t *testing.T) {
	lines := bytes.Join([][]byte{benchLines()["tool use"], benchLines()["code"], benchLines()["Korean"]}, []byte("\n"))
	if n := testing.AllocsPerRun(10, func() {
		for line := range bytes.Lines(lines) {
			Scan(bytes.TrimSuffix(line, []byte("\n")))
		}
	}); n != 0 {
		t.Errorf("Scan allocated %v times", n)
	}
}
