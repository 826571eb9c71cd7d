package api_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// refusedArtifact is a request that is not taken.
type refusedArtifact struct {
	path, body string
	status     int
	code       string
}

// refusals are requests of which one thing is wrong.
func refusals() map[string]refusedArtifact {
	event := func(members string) string {
		return artifact("s", `"events":[`+linked("ok.md", 1, "ok")+`,{"at":"2026-11-21T00:00:00Z","version":1,"by":"user",`+members+`}]`)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("x")))
	documents, checkpoints, start := "/api/documents", "/api/checkpoints", "/api/blobs/"+sum+"/start"
	return map[string]refusedArtifact{
		"no JSON":             {documents, `{"session_id"`, 400, "bad_json"},
		"no head":             {documents, `{"session_id":"s","events":[]}`, 400, "bad_extension"},
		"no session":          {documents, strings.Replace(artifact("s", `"events":[]`), `"session_id":"s"`, `"session_id":""`, 1), 400, "bad_request"},
		"another version":     {documents, strings.Replace(artifact("s", `"events":[]`), `"v":1`, `"v":2`, 1), 400, "bad_extension"},
		"no epoch":            {documents, strings.Replace(artifact("s", `"events":[]`), `"epoch":"e1"`, `"epoch":""`, 1), 400, "bad_extension"},
		"no events":           {documents, artifact("s", `"x":1`), 400, "bad_request"},
		"no checkpoints":      {checkpoints, artifact("s", `"events":[]`), 400, "bad_request"},
		"above":               {documents, event(`"path":"../x","change":"linked"`), 400, "bad_item"},
		"inside and above":    {documents, event(`"path":"a/../../x","change":"linked"`), 400, "bad_item"},
		"from the root":       {documents, event(`"path":"/etc/passwd","change":"linked"`), 400, "bad_item"},
		"NUL":                 {documents, event(`"path":"a\u0000b","change":"linked"`), 400, "bad_item"},
		"not clean":           {documents, event(`"path":"a//b","change":"linked"`), 400, "bad_item"},
		"5 KB path":           {documents, event(`"path":"` + strings.Repeat("x", 5000) + `","change":"linked"`), 400, "bad_item"},
		"unknown change":      {documents, event(`"path":"a","change":"renamed"`), 400, "bad_item"},
		"negative version":    {documents, event(`"path":"a","change":"linked","version":-1`), 400, "bad_item"},
		"no time":             {documents, artifact("s", `"events":[{"path":"a","change":"linked"}]`), 400, "bad_item"},
		"year 12345":          {documents, event(`"path":"a","change":"linked","added_at":"0001-02-03T00:00:00Z"`), 400, "bad_item"},
		"another hash":        {documents, event(`"path":"a","change":"linked","size":1,"content":"y","sha256":"` + sum + `"`), 400, "bad_item"},
		"another size":        {documents, event(`"path":"a","change":"linked","size":2,"content":"x","sha256":"` + sum + `"`), 400, "bad_item"},
		"no hash":             {documents, event(`"path":"a","change":"linked","size":1,"content":"x"`), 400, "bad_item"},
		"capitals in a hash":  {documents, event(`"path":"a","change":"linked","sha256":"` + strings.ToUpper(sum) + `"`), 400, "bad_item"},
		"no base64":           {documents, event(`"path":"a","change":"linked","size":1,"encoding":"base64","content":"?","sha256":"` + sum + `"`), 400, "bad_item"},
		"unknown encoding":    {documents, event(`"path":"a","change":"linked","size":1,"encoding":"utf-7","content":"x","sha256":"` + sum + `"`), 400, "bad_item"},
		"content and blob":    {documents, event(`"path":"a","change":"linked","size":1,"content":"x","sha256":"` + sum + `","blob":"` + sum + `"`), 400, "bad_item"},
		"2 MiB inline":        {documents, event(`"path":"a","change":"linked","content":"` + strings.Repeat("x", 2<<20) + `"`), 413, "too_large"},
		"9 MiB":               {documents, artifact("s", `"events":[],"x":"`+strings.Repeat("x", 9<<20)+`"`), 413, "too_large"},
		"10001 items":         {documents, artifact("s", `"events":[`+strings.Repeat(`{},`, 10_000)+`{}]`), 413, "too_large"},
		"checkpoint no id":    {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `"cp-1"`, `""`, 1)+`]`), 400, "bad_item"},
		"checkpoint below 0":  {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `"tokens_used":80`, `"tokens_used":-1`, 1)+`]`), 400, "bad_item"},
		"checkpoint no time":  {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `"created_at"`, `"x"`, 1)+`]`), 400, "bad_item"},
		"a huge summary":      {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `half`, strings.Repeat("x", 70_000), 1)+`]`), 400, "bad_item"},
		"1 GB declared":       {start, artifact("s", `"size":1073741824,"name":"tool-results/t"`), 413, "too_large"},
		"a negative size":     {start, artifact("s", `"size":-1,"name":"tool-results/t"`), 400, "bad_request"},
		"a name above":        {start, artifact("s", `"size":1,"name":"../t"`), 400, "bad_request"},
		"a hash that is none": {"/api/blobs/xyz/start", artifact("s", `"size":1,"name":"t"`), 400, "bad_item"},
	}
}

// TestArtifactsRefused: what is not right is refused whole, with a status that says whether to try again.
func TestArtifactsRefused(t *testing.T) {
	r := newRig(t)
	for name, c := range refusals() {
		t.Run(name, func(t *testing.T) {
			a := r.do("POST", c.path, nil, strings.NewReader(c.body))
			if a.status != c.status || !strings.Contains(string(a.body), `"`+c.code+`"`) {
				t.Errorf("%d %.300s", a.status, a.body)
			}
		})
	}
	if n := r.count("streams") + r.count("documents") + r.count("blobs"); n != 0 {
		t.Errorf("%d rows of what was refused", n)
	}
	bomb := zstdOf(t, bytes.Repeat([]byte{' '}, 64<<20))
	for path, method := range map[string]string{"/api/documents": "POST", fmt.Sprintf("/api/blobs/%x?offset=0", sha256.Sum256(nil)): "PUT"} {
		if a := r.do(method, path, map[string]string{"Content-Encoding": "zstd"}, bytes.NewReader(bomb)); a.status != 413 {
			t.Errorf("%s: a bomb: %d %.200s", path, a.status, a.body)
		}
	}
}
