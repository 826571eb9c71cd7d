package api

import (
	_ "embed"
	"net/http"

	"github.com/ccship/ccship/server"
)

// openapiYAML describes the API. A test checks every answer and every route against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// openapi is GET /api/openapi.yaml.
func (s *Server) openapi(w http.ResponseWriter, _ *http.Request, _ server.Key) error {
	w.Header().Set("Content-Type", "application/yaml")
	return s.write(w, openapiYAML)
}
