package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/ccship/ccship/e2e/kit"
)

// contract is openapi.yaml. Every answer that a test gets through a rig is checked against it.
type contract struct {
	doc     map[string]any
	schemas *jsonschema.Compiler
	paths   []pathPattern

	mu   sync.Mutex
	seen map[string]bool // operations that were answered with success; guarded by mu
}

type pathPattern struct {
	template string
	match    *regexp.Regexp
}

var theContract = sync.OnceValues(func() (*contract, error) {
	doc, err := readContract("openapi.yaml")
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc.(map[string]any), schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	c.schemas.AssertFormat()
	c.schemas.AssertContent()
	if err := c.schemas.AddResource("https://ccship.invalid/openapi", doc); err != nil {
		return nil, err
	}
	parameter := regexp.MustCompile(`\\\{[a-z0-9]+\\\}`)
	for template := range c.doc["paths"].(map[string]any) {
		re := parameter.ReplaceAllString(regexp.QuoteMeta(template), "[^/]+")
		c.paths = append(c.paths, pathPattern{template, regexp.MustCompile("^" + re + "$")})
	}
	return c, nil
})

// readContract reads a YAML document as the JSON values that a schema is made from.
func readContract(path string) (any, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc any
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	if b, err = json.Marshal(doc); err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(b))
}

// checkContract fails the test when an answer does not match openapi.yaml.
func checkContract(t testing.TB, req *http.Request, status int, contentType string, body []byte) {
	t.Helper()
	c := kit.Try(theContract()).Must(t)
	if err := c.check(req, status, contentType, body); err != nil {
		t.Errorf("%s %s: %d: %v", req.Method, req.URL.RequestURI(), status, err)
	}
}

func (c *contract) check(req *http.Request, status int, contentType string, body []byte) error {
	for _, p := range c.paths {
		if !p.match.MatchString(req.URL.EscapedPath()) {
			continue
		}
		operation, ok := c.doc["paths"].(map[string]any)[p.template].(map[string]any)[strings.ToLower(req.Method)]
		if !ok {
			break
		}
		if status < 300 {
			c.mu.Lock()
			c.seen[req.Method+" "+p.template] = true
			c.mu.Unlock()
		}
		return c.checkAnswer(operation.(map[string]any), p.template, strings.ToLower(req.Method), status, contentType, body)
	}
	return nil // not the API's
}

func (c *contract) checkAnswer(operation map[string]any, path, method string, status int, contentType string, body []byte) error {
	code := fmt.Sprint(status)
	responses := operation["responses"].(map[string]any)
	pointer := "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(path) + "/" + method + "/responses/" + code
	if _, ok := responses[code]; !ok {
		if status < 300 {
			return fmt.Errorf("this status is not described")
		}
		responses = map[string]any{code: c.doc["components"].(map[string]any)["responses"].(map[string]any)["Error"]}
		pointer = "#/components/responses/Error"
	}
	media, _, _ := strings.Cut(contentType, ";")
	contents := responses[code].(map[string]any)["content"].(map[string]any)
	if _, ok := contents[media]; !ok {
		return fmt.Errorf("content type %q is not described", contentType)
	}
	if media != "application/json" || len(body) == 0 {
		return nil
	}
	pointer += "/content/application~1json/schema"
	schema, err := c.compile(pointer)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%w\nin %.2000s", err, body)
	}
	return nil
}

func (c *contract) compile(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schemas.Compile("https://ccship.invalid/openapi" + strings.ReplaceAll(strings.ReplaceAll(pointer, "{", "%7B"), "}", "%7D"))
}

// unseen are the operations that no test was answered with success.
func (c *contract) unseen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for path, item := range c.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			if name := strings.ToUpper(method) + " " + path; !c.seen[name] {
				out = append(out, name)
			}
		}
	}
	return out
}

// TestContractCanFail: answers that are not as described are found.
func TestContractCanFail(t *testing.T) {
	c := kit.Try(theContract()).Must(t)
	req := kit.Try(http.NewRequest(http.MethodGet, "/api/me", nil)).Must(t)
	good := `{"user":{"name":"a","role":"owner","created":"2026-11-21T00:00:00Z","disabled":null},
		"key":{"name":"k","user":"a","created":"2026-11-21T00:00:00Z","last_used":null,"revoked":null},
		"stored":{"bytes":1,"sessions":1},"quota":{"bytes":null,"sessions":5}}`
	kit.Must(t, c.check(req, 200, "application/json", []byte(good)))
	for what, change := range map[string][2]string{
		"unknown member":        {`"disabled":null`, `"disabled":null,"size":43`},
		"missing member":        {`,"disabled":null`, ``},
		"wrong role":            {`"owner"`, `"king"`},
		"no time":               {`"2026-11-21T00:00:00Z","disabled"`, `"yesterday","disabled"`},
		"secret where it isn't": {`"revoked":null`, `"revoked":null,"key":"ccs_"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		kit.Require(t, json.Valid([]byte(bad)), "%s: the test's own JSON is broken: %s", what, bad)
		kit.Check(t, c.check(req, 200, "application/json", []byte(bad)) != nil, "%s: not found", what)
	}
	kit.Check(t, c.check(req, 418, "application/json", []byte(good)) != nil &&
		c.check(req, 200, "text/plain", []byte(good)) != nil && c.check(req, 204, "application/json", nil) != nil,
		"wrong status or content type: not found")
}
