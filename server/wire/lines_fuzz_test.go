package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// FuzzRequest: no body breaks the parser; what it takes is JSON and means what a decoder says, what it refuses is
// refused as the client's fault, and the body stays as it was.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"project_hash":"p","session_id":"s","entries":[{"line_index":0,"type":"user"},{"line_index":1}]}`,
		`{"entries" : [ ] , "session_id":"\u00e9" , "x":[1,{"y":"]}\\\""}],"n":null,"f":1.5e3}`,
		`{"session_id":"s","entries":[{"a":1,"line_index":5}],"ccship":{"v":1,"machine":"m","epoch":"e","edges":[[5,"IA==","DQ=="]]}}`,
		`{"session_id":"s","entries":[{"line_index":1,"type":"ccship.opaque","encoding":"base64","data":"AAA="}]}`,
		`{"session_id":"s","entries":[{"line_index":1,"a":"\\"},{"line_index":2,"a":"\""}]}`,
		`{"session_id":"s","entries":[{}`, `[`, ``, `{"a":"\`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		batch, err := ParseLines(body)
		kit.Require(t, bytes.Equal(before, body), "the body was changed")
		if err != nil {
			_, ok := errors.AsType[*RefusalError](err)
			kit.Require(t, ok, "not a refusal: %v", err)
			return
		}
		kit.Require(t, json.Valid(body), "taken, but not JSON: %q", body)
		checkAgainstDecoder(t, body, batch)
	})
}

// checkAgainstDecoder compares with encoding/json, unless names differ in case only, which it does not distinguish.
func checkAgainstDecoder(t *testing.T, body []byte, batch *server.Batch) {
	var want map[string]json.RawMessage
	kit.Must(t, json.Unmarshal(body, &want))
	var id string
	var entries []json.RawMessage
	kit.Require(t, json.Unmarshal(want["session_id"], &id) == nil && json.Unmarshal(want["entries"], &entries) == nil,
		"taken, but not a request: %q", body)
	kit.Require(t, id == batch.Head.SessionID && len(entries) == len(batch.Lines),
		"%q with %d entries read as %q with %d", id, len(entries), batch.Head.SessionID, len(batch.Lines))
	for i, e := range entries {
		index, _, _, err := transcript.RestoreEntry(e)
		kit.Require(t, err == nil && index == batch.Lines[i].Index, "entry %d: line %d, want %d (%v)", i,
			batch.Lines[i].Index, index, err)
	}
}

func TestScanValue(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"}"} ,`:   `{"a":"}"}`,
		` [1,[2,"]"]]x`: `[1,[2,"]"]]`,
		`"a\"b\\" ]`:    `"a\"b\\"`,
		`"\\\\\"" `:     `"\\\\\""`,
		`12 ,`:          `12`,
		`true}`:         `true`,
		`{"a":`:         ``,
		`"a\"`:          ``,
		`,`:             ``,
		``:              ``,
		`{"` + strings.Repeat(`\\`, 9) + `":{}}}`: `{"` + strings.Repeat(`\\`, 9) + `":{}}`,
	} {
		s := scan{b: []byte(in)}
		kit.Equal(t, in, string(s.value()), want)
	}
}

// TestNamesAreShort: a name of a stream, which is kept and indexed for every stream, has 1 KiB at most, and what clients
// make of the longest names of files is accepted.
func TestNamesAreShort(t *testing.T) {
	name := strings.Repeat("n", 1<<10)
	kit.Should(t, CheckName(name, "session_id"))
	err := CheckName(name+"n", "session_id")
	kit.Check(t, err != nil, "a name of more than 1 KiB is accepted")
	for _, char := range []string{"x", "\x01", "é", "\xff"} {
		long := strings.Repeat(char, 1000)
		parent := transcript.StreamName(long, "", 999_999)
		for _, got := range []string{parent, transcript.StreamName("agent-"+long, parent, 999_999), transcript.StreamName(long+"/agent-"+long, "", 2)} {
			kit.Err(t, fmt.Sprintf("%q: %d bytes", char, len(got)), nil)(CheckName(got, "session_id"))
		}
	}
	var x extension
	x.Version, x.Machine, x.Epoch, x.Cwd = 1, "m", "e", "/"+strings.Repeat("d/", 4<<10)
	kit.Err(t, "a deep folder", nil)(x.check())
	x.Machine = name + "n"
	err = x.check()
	kit.Check(t, err != nil, "a machine of more than 1 KiB is accepted")
}
