package server

import (
	_ "embed"
	"net/http"
)

// The API's description. openapi.json is made of openapi.yaml; a test holds both to one another and to the handlers.
var (
	//go:embed openapi.yaml
	openapiYAML []byte
	//go:embed openapi.json
	openapiJSON []byte
)

// openapiYAML is GET /api/openapi.yaml.
func (s *Server) openapiYAML(w http.ResponseWriter, _ *http.Request, _ Key) error {
	w.Header().Set("Content-Type", "application/yaml")
	return s.write(w, openapiYAML)
}

// openapiJSON is GET /api/openapi.json.
func (s *Server) openapiJSON(w http.ResponseWriter, _ *http.Request, _ Key) error {
	w.Header().Set("Content-Type", "application/json")
	return s.write(w, openapiJSON)
}
