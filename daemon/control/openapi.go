package control

import _ "embed"

// openAPI describes the interface for programs: OpenAPI 3.1, served at /v1/openapi.
//
//go:embed openapi.json
var openAPI []byte
