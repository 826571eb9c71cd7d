package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestScanAllocates: Scan allocates for ordinary lines only what its documentation says.
func TestScanAllocates(t *testing.T) {
	head := `{"parentUuid":"5f0c1a52-1c5b-4a0e-9d0d-0f6f5f1c2b3a","isSidechain":false,"userType":"external","cwd":"/home/kim/shop",` +
		`"sessionId":"1c0e9b1e-7a51-4f9e-8a42-91d2f0a3c4d5","version":"2.1.328","gitBranch":"main","type":"%s","message":%s` +
		`,"uuid":"8d7c6b5a-4f3e-4d2c-9b1a-0f9e8d7c6b5a","timestamp":"2026-11-20T10:00:00.000Z"}`
	usage := `{"model":"claude","id":"msg_1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read",` +
		`"input":{"file_path":"/home/kim/shop/main.go","offset":120,"limit":40}}],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":4,"cache_creation_input_tokens":1184,"cache_read_input_tokens":18522,"output_tokens":3}}`
	code := strings.Repeat(`\tif err := f.Close(); err != nil {\n\t\treturn fmt.Errorf(\"close: %w\", err)\n\t}\n`, 100)
	korean := strings.Repeat(`대화 히스토리는 서버에 저장되고, 되감기가 있어도 잃지 않는다. `, 60)
	lines := [][]byte{
		fmt.Appendf(nil, head, "assistant", usage),
		fmt.Appendf(nil, head, "user", `{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"`+code+`"}]}`),
		fmt.Appendf(nil, head, "assistant", `{"role":"assistant","content":[{"type":"text","text":"`+korean+`"}]}`),
	}
	for _, line := range lines {
		n := testing.AllocsPerRun(10, func() { Scan(line) })
		kit.Check(t, n == 0 && Scan(line).Shape == Object, "Scan allocated %v times for %.60s", n, line)
	}
}
