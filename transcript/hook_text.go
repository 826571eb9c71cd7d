package transcript

import (
	"encoding/json"
	"strings"
)

// HookText returns what an attachment says that a hook has shown the model; "" if it says nothing of the kind. Claude
// Code writes down what hooks print that it waits for in another way than what others print.
func HookText(r *Record) string {
	var a struct {
		Content  []string `json:"content"`
		Response struct {
			Output struct {
				Context string `json:"additionalContext"`
			} `json:"hookSpecificOutput"`
		} `json:"response"`
	}
	switch r.Subtype {
	case "hook_additional_context", "async_hook_response":
		if json.Unmarshal(r.Attached, &a) == nil {
			return strings.Join(append(a.Content, a.Response.Output.Context), "\n")
		}
	}
	return ""
}
