package transcript

import "strings"

// Sizes of context windows, in tokens.
const (
	StandardWindow = 200_000
	LargeWindow    = 1_000_000
)

// NativeWindow returns the size of a model's context window in tokens, 0 if the model is not known. Where a larger
// window is optional, which transcripts do not record, it is the smaller one. Source: Anthropic's model overview.
func NativeWindow(model string) int64 {
	base, asked := strings.CutSuffix(model, "[1m]")
	family, version := modelFamily(base)
	elsewhere := strings.Contains(model, "anthropic.") || strings.Contains(model, "@") // Bedrock; Vertex
	switch {
	case family == "":
		return 0
	case asked, family == "fable", family == "mythos", family == "sonnet" && version >= 500,
		family == "haiku" && version >= 505:
		return LargeWindow
	case family == "opus" && version == 407, family == "opus" && version > 407 && !elsewhere:
		return LargeWindow
	}
	return StandardWindow
}

// AskedWindow returns the size of the window that was asked for next to a model's name; 0 if none was. said is a name
// like AskedModel, or what Claude Code prints when the model is chosen.
func AskedWindow(said string) int64 {
	if strings.Contains(said, "[1m]") || strings.Contains(said, "1M context") {
		return LargeWindow
	}
	return 0
}

// SameModel reports whether an answer's model is the one that was asked for. Names like "opus[1m]" are any of a family,
// "" is any.
func SameModel(asked, model string) bool {
	base, _, _ := strings.Cut(asked, "[")
	return base == "" || strings.Contains(model, base)
}

// modelFamily splits a model's name: claude-opus-4-7-20260101 is "opus" and 407, claude-3-5-sonnet-20241022 is "sonnet"
// and 305.
func modelFamily(model string) (family string, version int) {
	parts := strings.FieldsFunc(model, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for i, part := range parts {
		switch part {
		case "opus", "sonnet", "haiku", "fable", "mythos":
			after := i + 1
			for after < len(parts) && after < i+3 && isVersion(parts[after]) {
				after++
			}
			if after > i+1 {
				return part, modelVersion(parts[i+1 : after])
			}
			before := i
			for before > 0 && before > i-2 && isVersion(parts[before-1]) {
				before--
			}
			return part, modelVersion(parts[before:i])
		}
	}
	return "", 0
}

// isVersion reports whether a part is a version number rather than a date or a word.
func isVersion(part string) bool {
	return len(part) <= 2 && strings.Trim(part, "0123456789") == ""
}

// modelVersion is 100 times the first number plus the second.
func modelVersion(parts []string) int {
	v := 0
	for i, part := range parts {
		n := int(integer([]byte(part)))
		if i == 0 {
			n *= 100
		}
		v += n
	}
	return v
}
