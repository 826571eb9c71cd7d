// Package api serves the HTTP API: it authenticates requests, reads them, calls the store and writes responses, events
// and metrics. openapi.yaml describes every call, and tests check every response against it. It does not know how bytes
// are kept (server.Store) or what a page looks like (Server.Viewer).
package api
