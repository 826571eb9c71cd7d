package control

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// schemas collects the JSON schemas of wire types, by the types' names.
type schemas map[string]object

// values lists the values of members whose tag is too short for them.
var values = map[string][]string{
	"Status.state": {
		StateWatching, StateImporting, StateReading, StateSending, StateRetrying, StatePaused, StateRefused, StateFull,
		StateNoServer,
	},
	"Server.kind": {
		"unreachable", "server_error", "busy", "over_quota", "refused_key", "refused", "not_found", "redirect", "protocol",
	},
	"SyncResult.reason": {
		"timeout", "unreachable", "refused_key", "refused", "no_server", "full", "unreadable", "paused",
	},
}

// of returns the schema of a type. A struct is added to s, and the schema refers to it.
func (s schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[object]():
		return object{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Struct:
		s.add(t)
		return object{"$ref": "#/components/schemas/" + t.Name()}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Uint32:
		return object{"type": "integer", "format": "int64", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	default:
		panic("no JSON schema for " + t.String())
	}
}

// add describes a struct and what it refers to, once.
func (s schemas) add(t reflect.Type) {
	if s[t.Name()] != nil {
		return
	}
	properties, required := object{}, []string{}
	s[t.Name()] = object{"type": "object", "properties": properties}
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous {
			continue // its own members are among the visible ones
		}
		name, omit, _ := strings.Cut(field.Tag.Get("json"), ",")
		properties[name] = s.member(t.Name()+"."+name, field)
		if omit == "" {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		s[t.Name()]["required"] = required
	}
}

// member describes a field: its type, and what the tags doc and enum add.
func (s schemas) member(name string, field reflect.StructField) object {
	if field.Name == "SchemaVersion" {
		return object{"const": SchemaVersion}
	}
	member := s.of(field.Type)
	if doc := field.Tag.Get("doc"); doc != "" {
		member["description"] = doc
	}
	if enum, ok := field.Tag.Lookup("enum"); ok {
		member["enum"] = strings.Split(enum, ",")
	}
	if enum := values[name]; enum != nil {
		member["enum"] = enum
	}
	return member
}

// requires reports whether a request of type t has required members.
func (s schemas) requires(t reflect.Type) bool { return s[t.Name()]["required"] != nil }
