package control

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// parameter is a member of a request's query.
type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Schema      object `json:"schema"`
}

// optional is a query parameter that may be missing.
func optional(name, doc string) parameter {
	return parameter{Name: name, In: "query", Description: doc, Schema: object{"type": "string"}}
}

// needed is a query parameter that must be set.
func needed(name, doc string) parameter {
	p := optional(name, doc)
	p.Required = true
	return p
}

// pages are the parameters of a paged list. limit is the default page size.
func pages(limit int) []parameter {
	return []parameter{
		{
			Name: "offset", In: "query", Description: "how many items to skip",
			Schema: object{"type": "integer", "minimum": 0, "default": 0},
		},
		{
			Name: "limit", In: "query", Description: "how many items to return at most",
			Schema: object{"type": "integer", "minimum": 0, "maximum": maxPage, "default": limit},
		},
	}
}

// openAPI serves the OpenAPI document.
func (s *Endpoint) openAPI(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(s.document())
	if err != nil {
		s.fail(w, asError(err))
		return
	}
	w.Header().Set("Content-Type", "application/openapi+json")
	if _, err := w.Write(text); err != nil {
		s.log.Debug("answer not read", "err", err)
	}
}

// document describes every operation and every wire type, as OpenAPI 3.1.
func (s *Endpoint) document() object {
	types, paths := schemas{}, map[string]object{}
	for _, op := range s.operations() {
		if paths[op.path] == nil {
			paths[op.path] = object{}
		}
		paths[op.path][strings.ToLower(op.method)] = op.describe(types)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "ccship control socket", "version": strconv.Itoa(SchemaVersion),
			"license": object{"name": "MIT", "identifier": "MIT"},
			"description": "HTTP over a Unix socket that only its owner may open. Requests of web pages are refused: those " +
				"with Origin, Referer or Sec-Fetch-*, or for a host other than ccship, localhost or a loopback address. " +
				"Every document carries schema_version, which rises when a member changes its meaning; members may be added.",
		},
		"servers": []object{{
			"url":         "http://localhost",
			"description": `through the socket: curl --unix-socket "$(ccship config socket)" http://localhost/v1/status`,
		}},
		"paths":      paths,
		"components": object{"schemas": types},
	}
}

// describe returns the OpenAPI operation, and adds the types that it refers to.
func (op operation) describe(types schemas) object {
	kind, schema := op.media, object{"type": "string"}
	if op.answer != nil {
		schema = types.of(op.answer)
	}
	if kind == "" {
		kind = "application/json"
	}
	responses := object{"200": object{"description": "the answer", "content": object{kind: object{"schema": schema}}}}
	refused := object{"application/json": object{"schema": types.of(errorType)}}
	for _, code := range op.codes {
		status := strconv.Itoa(statusOf(code))
		text := "error code " + code
		if known, ok := responses[status].(object); ok {
			text = known["description"].(string) + ", " + code
		}
		responses[status] = object{"description": text, "content": refused}
	}
	responses["default"] = object{"description": "any other error", "content": refused}
	out := object{"operationId": op.id, "summary": op.summary, "responses": responses}
	if op.description != "" {
		out["description"] = op.description
	}
	if op.query != nil {
		out["parameters"] = op.query
	}
	if op.request != nil {
		content := object{"application/json": object{"schema": types.of(op.request)}}
		out["requestBody"] = object{"required": types.requires(op.request), "content": content}
	}
	return out
}
