package transcript

import (
	"regexp"
	"strings"
	"sync"
)

// name is what the spelling of a model's name says.
type name struct {
	model    string // as Anthropic writes it, in lower case, without date and version: "claude-opus-4-8"
	fast     bool   // of fast mode
	regional bool   // of an endpoint that keeps requests in one region
}

// spellings find the parts of a model's name that clouds, gateways and settings add or write otherwise.
type spellings struct{ decoration, profile, region, swapped, series *regexp.Regexp }

var patterns = sync.OnceValue(func() spellings {
	return spellings{
		// A date, a version, "[1m]", "-thinking", ":beta" behind the name.
		decoration: regexp.MustCompile(`(\[[^\]]*\]|[-@]\d{8}|[-@]latest|@default|-v\d+(:\d+)?|:\d+|[-:]thinking|:beta)$`),
		// "us.anthropic." of Bedrock's inference profiles.
		profile: regexp.MustCompile(`(?:^|[/:])([a-z-]+)\.anthropic\.$`),
		// "us/" of inference_geo, which gateways write too; "bedrock/eu-west-1/".
		region: regexp.MustCompile(`(?:^|/)(?:us|eu|apac|jp|au|[a-z]{2}(?:-[a-z]+)+-\d)/(?:anthropic\.)?$`),
		// "claude-4.5-sonnet" and "claude-4-opus".
		swapped: regexp.MustCompile(`^claude-([4-9](?:-\d{1,2})?)-(fable|mythos|opus|sonnet|haiku)$`),
		// "claude-haiku-3-5", which Anthropic calls "claude-3-5-haiku".
		series: regexp.MustCompile(`^claude-(opus|sonnet|haiku)-(3(?:-\d)?)$`),
	}
})

// parseName reads a model's name in any of the spellings.
func parseName(model string) name {
	p, rest := patterns(), strings.ToLower(model)
	n := name{model: rest}
	at := strings.LastIndex(rest, "claude-")
	if at < 0 {
		return n
	}
	prefix, rest := rest[:at], rest[at:]
	profile := p.profile.FindStringSubmatch(prefix)
	n.regional = profile != nil && profile[1] != "global" || p.region.MatchString(prefix)
	n.fast = strings.HasPrefix(prefix, "fast/") || strings.Contains(prefix, "/fast/")
	for {
		if found := p.decoration.FindStringIndex(rest); found != nil && found[0] > 0 {
			rest = rest[:found[0]]
		} else if plain, ok := strings.CutSuffix(rest, "-fast"); ok {
			rest, n.fast = plain, true
		} else {
			break
		}
	}
	rest = strings.ReplaceAll(rest, ".", "-")
	rest = p.swapped.ReplaceAllString(rest, "claude-$2-$1")
	n.model = p.series.ReplaceAllString(rest, "claude-$2-$1")
	return n
}
