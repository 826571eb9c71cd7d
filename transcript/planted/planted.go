// Package planted makes texts with secrets of every kind, for tests. No program links it.
package planted

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
)

var kinds = map[string]string{
	"aws-key":         "key {AKIA<B16>} used",
	"aws-secret":      "aws_secret_access_key = {<a40>}",
	"aws-session":     "AWS_SESSION_TOKEN={<a180>}",
	"gcp-api-key":     "maps?key={AIza<a35>}",
	"gcp-client":      "secret: {GOCSPX-<a28>}",
	"gcp-access":      "gcloud said {ya29.<a60>}",
	"gcp-refresh":     "{1//0<a60>}",
	"gcp-key-id":      `"private_key_id": "{<h40>}"`,
	"azure-storage":   "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={<a86>==};EndpointSuffix=core",
	"azure-secret":    "client secret {<a3>8Q~<a34>} end",
	"azure-sas":       "https://x.blob.core.windows.net/c?sv=2024-01-01&sig={<a42>%3D}",
	"digitalocean":    "{dop_v1_<h64>}",
	"heroku":          "{HRKU-<a40>}",
	"alibaba":         "{LTAI<a20>}",
	"databricks":      "{dapi<h32>}",
	"vault":           "VAULT {hvs.<a90>}",
	"terraform":       "credentials { token = \"{<a14>.atlasv1.<a64>}\" }",
	"pulumi":          "{pul-<h40>}",
	"netlify":         "{nfp_<a36>}",
	"supabase":        "{sbp_<h40>}",
	"planetscale":     "{pscale_tkn_<a40>}",
	"doppler":         "{dp.pt.<a43>}",
	"age":             "{AGE-SECRET-KEY-1<B5>}",
	"tailscale":       "{tskey-auth-<a30>}",
	"grafana":         "{glsa_<a32>_<h8>}",
	"new-relic":       "{NRAK-<U27>}",
	"sentry":          "{sntryu_<h64>}",
	"postman":         "{PMAK-<h24>-<h34>}",
	"linear":          "{lin_api_<a40>}",
	"notion":          "{ntn_<a46>}",
	"figma":           "{figd_<a40>}",
	"shopify":         "{shpat_<h32>}",
	"sendgrid":        "{SG.<a22>.<a43>}",
	"mailgun":         "{key-<h32>}",
	"mailchimp":       "{<h32>-us12}",
	"langsmith":       "{lsv2_pt_<h32>_<h10>}",
	"github":          "remote: {ghp_<a36>} rejected",
	"github-app":      "{ghs_<a36>}",
	"github-pat":      "{github_pat_<a22>_<a59>}",
	"gitlab":          "{glpat-<a20>}",
	"bitbucket":       "{ATBB<a32>}",
	"slack":           "{xoxb-<d12>-<d12>-<a24>}",
	"slack-webhook":   "curl https://hooks.slack.com/services/{T<U10>/B<U10>/<a24>}",
	"discord":         "discord bot token: {MT<a24>.<a6>.<a38>}",
	"discord-webhook": "https://discord.com/api/webhooks/<d18>/{<a68>}",
	"telegram":        "token {<d9>:AA<a33>} ok",
	"twilio":          "TWILIO_AUTH: {<h32>}",
	"stripe":          "{sk_live_<a24>}",
	"stripe-webhook":  "{whsec_<a32>}",
	"square":          "{sq0atp-<a22>}",
	"razorpay":        "{rzp_live_<a14>}",
	"flutterwave":     "{FLWSECK-<a32>-X}",
	"plaid":           "{access-production-<h8>-<h4>-<h4>-<h4>-<h12>}",
	"npm":             "{npm_<a36>}",
	"npmrc":           "//registry.example.com/:_authToken={<a30>1}",
	"pypi":            "{pypi-AgEIcHlwaS5vcmc<a80>}",
	"rubygems":        "{rubygems_<h48>}",
	"crates":          "{cio<a32>}",
	"nuget":           "{oy2<l43>}",
	"docker":          "{dckr_pat_<a27>}",
	"anthropic":       "{sk-ant-api03-<a93>AA}",
	"openai":          "{sk-proj-<a74>}",
	"openai-legacy":   "{sk-<a20>T3BlbkFJ<a20>}",
	"openrouter":      "{sk-or-v1-<h64>}",
	"huggingface":     "{hf_<a34>}",
	"groq":            "{gsk_<a52>}",
	"perplexity":      "{pplx-<a48>}",
	"replicate":       "{r8_<a37>}",
	"xai":             "{xai-<a80>}",
	"nvidia":          "{nvapi-<a64>}",
	"private-key":     "-----BEGIN RSA PRIVATE KEY-----\n{<a64>\n<a64>\n<a40>}\n-----END RSA PRIVATE KEY-----\n",
	"private-key-cut": "-----BEGIN OPENSSH PRIVATE KEY-----\n{<a64>\n<a64>}",
	"jwt":             "{eyJ<a30>.eyJ<a60>.<a43>}",
	"url-password":    "postgres://app:{<a20>}@db.internal:5432/app",
	"bearer":          "curl -H 'Authorization: Bearer {<a40>1}'",
	"authorization":   "Authorization: Basic {<a24>1}",
	"api-key-header":  "X-Api-Key: {<a32>1}",
	"curl-user":       "curl -s -u admin:{<a16>1} https://h/",
	"cookie":          "Cookie: {session=<a32>1; csrftoken=<a32>}",
	"set-cookie":      "Set-Cookie: {sid=<a32>1; Path=/}",
	"env-password":    "DEBUG=1\nDB_PASSWORD={<a15>1}\nPORT=80",
	"env-secret":      "export APP_SECRET=\"{<a30>1}\"",
	"env-token":       "CI_TOKEN={<a30>1}",
	"json-password":   `{"user": "x", "password": "{<a15>1}"}`,
	"yaml-password":   "db:\n  password: {<a15>1}\n  port: 1",
	"code-secret":     "const client_secret = '{<a30>1}'",
	"netrc":           "machine shop.example login kim password {<a20>7}",
	"flag":            "deploy --db-password {<a20>7} --all",
	"jwk":             `"kty": "EC", "crv": "P-256", "d": "{<a43>}"`,
	"query":           "GET https://shop.example/v1/cart?access_token={<a30>7}&page=2",
	"json-cookie":     `"Cookie": "session={<a30>7}"`,
}

// Kinds returns texts with secrets of every kind, by name: {…} is the secret, <a36> are 36 characters of an alphabet.
func Kinds() map[string]string { return maps.Clone(kinds) }

// alphabets are what the letters in <…> stand for.
var alphabets = map[byte]string{
	'a': "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	'B': "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
	'U': "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
	'l': "abcdefghijklmnopqrstuvwxyz0123456789",
	'h': "0123456789abcdef",
	'd': "123456789",
}

// Plant makes a text of one of Kinds' forms, and the secret in it.
func Plant(r *rand.Rand, form string) (text, secret string) {
	var b strings.Builder
	for {
		i := strings.IndexByte(form, '<')
		if i < 0 {
			break
		}
		b.WriteString(form[:i])
		end := i + strings.IndexByte(form[i:], '>')
		var n int
		_, _ = fmt.Sscan(form[i+2:end], &n)
		for range n {
			alphabet := alphabets[form[i+1]]
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		form = form[end+1:]
	}
	b.WriteString(form)
	text = b.String()
	if strings.Contains(text, "AGE-SECRET") {
		const bech32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
		key := make([]byte, 58)
		for i := range key {
			key[i] = bech32[r.IntN(len(bech32))]
		}
		text = "{AGE-SECRET-KEY-1" + string(key) + "}"
	}
	from, to := marks(text)
	return text[:from] + text[from+1:to] + text[to+1:], text[from+1 : to]
}

// marks finds the braces around the secret: the innermost pair.
func marks(text string) (from, to int) {
	for i := range len(text) {
		switch text[i] {
		case '{':
			from = i
		case '}':
			return from, i
		}
	}
	panic("no secret in " + text)
}
