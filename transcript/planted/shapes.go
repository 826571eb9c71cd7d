package planted

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Class is where secrets of a kind occur.
type Class string

// The classes of shapes.
const (
	Tokens   Class = "tokens of vendors"
	Files    Class = "files"
	Commands Class = "commands and assignments"
)

// Shape is a text with a secret: ‹…› is the secret, «a36» are 36 characters of an alphabet, of which p is what people
// and generators make passwords of.
type Shape struct {
	Class      Class
	Name, Form string
}

// Shapes returns texts of every class, in a fixed order. No form holds a secret: Make invents it.
func Shapes() []Shape {
	var all []Shape
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if !slices.Contains(notTokens, kind) {
			all = append(all, Shape{Tokens, kind, kinds[kind]})
		}
	}
	for class, table := range map[Class]string{Tokens: moreTokens, Files: files, Commands: commands} {
		for i, text := range strings.Split(strings.Trim(table, "\n"), "\n") {
			text = strings.ReplaceAll(text, "⏎", "\n")
			all = append(all, Shape{class, string(class[0]) + strconv.Itoa(i+1) + " " + firstLine(text), text})
		}
	}
	slices.SortStableFunc(all, func(a, b Shape) int { return strings.Compare(string(a.Class)+a.Name, string(b.Class)+b.Name) })
	return all
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// notTokens are kinds that are no tokens of vendors, or of which Shapes has others.
var notTokens = []string{
	"json-password", "terraform", "age", "env-password", "env-secret", "env-token", "yaml-password", "code-secret", "netrc",
	"flag", "query", "json-cookie", "cookie", "set-cookie", "bearer", "authorization", "api-key-header", "curl-user",
	"url-password", "private-key", "private-key-cut", "twilio",
}

// passwordSigns are what passwords have besides letters and digits.
const passwordSigns = "!@#%^*_-+=."

// Make invents what is random in a shape.
func (s Shape) Make(r *rand.Rand) (text, secret string) {
	var b strings.Builder
	rest := s.Form
	for {
		before, after, found := strings.Cut(rest, "«")
		b.WriteString(before)
		if !found {
			break
		}
		spec, tail, _ := strings.Cut(after, "»")
		n, _ := strconv.Atoi(spec[1:])
		alphabet, signs := alphabets[spec[0]], ""
		if spec[0] == 'p' {
			alphabet, signs = alphabets['a'], passwordSigns
		}
		for i := range n {
			from := alphabet
			if signs != "" && i > 0 && i < n-1 && r.IntN(6) == 0 {
				from += signs
			}
			b.WriteByte(from[r.IntN(len(from))])
		}
		rest = tail
	}
	text = b.String()
	before, after, _ := strings.Cut(text, "‹")
	secret, after, _ = strings.Cut(after, "›")
	return before + secret + after, secret
}

const moreTokens = `
slack user session ‹xoxc-«d12»-«d12»-«d12»-«h64»›
slack cookie d=‹xoxd-«a120»›;
bot login with ‹MT«a22».«a6».«a38»›
client.run("‹MTIz«a21».G«a5».«a38»›")
sid ‹SK«h32»›
account AC«h32»:‹«h32»›
vercel env pull --token ‹vcp_«a56»›
ai gateway ‹vck_«a56»›
‹secret_«a43»› is for the old integration
‹pat«a14».«h64»› for the base
‹1/12011«d11»:«h32»›
‹2/12011«d11»/12034«d11»:«h32»›
‹A3-«U6»-«U6»-«U5»-«U5»-«U5»-«U5»›
‹p8e-«l32»›
‹ABSK«a120»=›
‹4b1d«a38»›
‹dnkey-«a26»-«a52»›
‹duffel_live_«a43»›
‹EAAC«a110»›
‹fio-u-«a64»›
‹GR1348941«a20»›
_gitlab_session=‹«l32»›
‹glrt-«a20»›
‹gldt-«a20»›
‹glcbt-64_«a20»›
‹eyJrIjoi«a80»›
‹eyJhdXRocyI6«a80»›
‹pat.«a22».«a24».«a20»›
‹NRII-«a32»›
‹API-«U26»›
‹sha256~«a43»›
‹pnu_«a36»›
‹rdme_«l70»›
‹tk-us-«a48»›
‹xkeysib-«h64»-«a16»›
‹sm_pat_«a16»›
‹shippo_live_«h40»›
‹squ_«h40»›
‹sgp_«h16»_«h40»›
‹sgp_«a64»›
‹tfp_«a59»›
‹AQVN«a36»›
‹sk.eyJ«a60».«a22»›
‹«a6»_«a29»_mmk›
‹AIK_SECRET_«a64»›
‹apify_api_«a36»›
‹BSA«a28»›
‹bkua_«l40»›
‹cnvca«a51»›
‹CCIPAT_«a22»_«l40»›
‹csa_«h30»«a6»›
‹CCDB1_«a22»_«a40»›
‹configcat-sdk-1/«a22»/«a22»›
‹AstraCS:«a24»:«h64»›
‹ddp_«a36»›
‹dvc_server_«a32»›
‹apk_user_«a140»›
‹SWMTKN-1-«l50»-«l25»›
‹SWMKEY-1-«a43»›
‹essu_«a100»›
‹AQ.Ab8RN6«a44»›
‹EXO«h24»›
‹lip_«a20»›
‹mlsn.«a64»›
‹mergify_application_key_«a60»›
‹Mid-server-«a24»›
‹mdb_sa_sk_«a40»›
‹napi_«a64»›
‹api_live.«a40»›
‹pdl_live_apikey_«l26»_«a22»_«a3»›
‹pcsk_«a6»_«a63»›
‹pina_«a60»›
‹polar_oat_«a43»›
‹phx_«a43»›
‹ramp_sec_«a48»›
‹rpa_«U40»«a6»›
‹rootly_«h64»›
‹samsara_api_«a30»›
‹tss_«a40»›
‹ucat_«a26»›
‹vtwn_«a40»›
‹wandb_v1_«a77»›
‹zpka_«l32»_«h8»›
‹re_«a8»_«a24»›
‹fc-«h32»›
‹jina_«a60»›
‹sk-lf-«h8»-«h4»-«h4»-«h4»-«h12»›
‹sk-svcacct-«a58»T3BlbkFJ«a58»›
‹sk-ant-admin01-«a93»AA›
‹sk_«h48»›
‹csk-«l48»›
‹tvly-dev-«a32»›
‹tgp_v1_«a43»›
‹fo1_«a43»›
‹dt0c01.«U24».«U64»›
‹ATATT3«a180»›
‹lin_oauth_«a64»›
‹hvb.«a140»›
‹ops_eyJ«a260»›
‹EZAK«a54»›
‹shpss_«h32»›
aws_access_key_id = AKIA«B16»⏎aws_secret_access_key = ‹«a40»›
AKIA«B16»⏎‹«a40»›
Access key ID,Secret access key⏎AKIA«B16»,‹«a40»›
User name,Password,Access key ID,Secret access key⏎kim,,AKIA«B16»,‹«a40»›
key AKIA«B16» / ‹«a40»›
export AWS_ACCESS_KEY_ID=ASIA«B16»; export AWS_SECRET_ACCESS_KEY=‹«a40»›
datadog api_key: ‹«h32»›
ALGOLIA_ADMIN_KEY=‹«h32»›
HEROKU_API_KEY=‹«h8»-«h4»-«h4»-«h4»-«h12»›
TWILIO_AUTH_TOKEN=‹«h32»›
twilio.Client("AC«h32»", "‹«h32»›")
CLOUDFLARE_API_TOKEN=‹«a40»›
MAILCHIMP: ‹«h32»-us12›
SNYK_TOKEN=‹«h8»-«h4»-«h4»-«h4»-«h12»›
adafruit_io_key = "‹«l32»›"
adafruit: ‹aio_«a28»›
Authorization: ApiKey-v1 ‹gcntfy-prod-«h8»-«h4»-«h4»-«h4»-«h12»-«h8»-«h4»-«h4»-«h4»-«h12»›
checkout: ‹sk_«h8»-«h4»-«h4»-«h4»-«h12»›
clickup: ‹pk_«d8»_«U32»›
id ‹STS.N«a23»›
sts ‹CAIS«a120»›
‹cmVmd«a59»›
db key ‹db-«a29»›
fastly-key: ‹«a32»›
gitea_access: ‹«h40»›
honeycomb ‹hcaik_«l58»›
‹pat-na1-«h8»-«h4»-«h4»-«h4»-«h12»›
‹ico-«a32»›
kraken api-key: ‹«a80»==›
launchdarkly ‹sdk-«h8»-«h4»-«h4»-«h4»-«h12»›
messagebird_key: ‹«a25»›
sfdc session ‹00D«a12»!AQ«a88»›
SENTRY_DSN=https://‹«h32»›@o12.ingest.example.io/12
BUNDLE_ENTERPRISE__CONTRIBSYS__COM=‹«h8»:«h8»›
SONAR_LOGIN=‹«h40»›
‹«a22»==:«a32»›
ollama: ‹«h32».«a24»›
airtable api: ‹key«a14»›
<pre>CODECOV_TOKEN=‹«h8»-«h4»-«h4»-«h4»-«h12»›</pre>
mapbox secret sk.‹eyJ«a70».«a22»›
‹sat.«a22».«h24».«a20»›
‹e2b_«h40»›
‹esecret_«l26»›
‹bb_live_«a27»›
‹sk_car_«a22»›
‹ctx7sk-«h8»-«h4»-«h4»-«h4»-«h12»›
‹npg_«a12»›
‹pa-«a43»›
$ANSIBLE_VAULT;1.1;AES256⏎‹«h80»⏎«h80»⏎«h60»›
https://mainnet.infura.io/v3/‹«h32»›
wss://polygon-mainnet.g.alchemy.com/v2/‹«a32»›
https://open.feishu.cn/open-apis/bot/v2/hook/‹«h8»-«h4»-«h4»-«h4»-«h12»›
https://maker.ifttt.com/trigger/door/with/key/‹«a22»›
https://hooks.zapier.com/hooks/catch/«d7»/‹«l10»›/
https://events.pagerduty.com/integration/‹«h32»›/enqueue
https://outlook.office.com/webhook/‹«h8»-«h4»-«h4»-«h4»-«h12»@«h8»-«h4»-«h4»-«h4»-«h12»/IncomingWebhook/«h32»/«h8»-«h4»-«h4»-«h4»-«h12»›
https://api.openweathermap.org/data?q=x&appid=‹«h32»›
InstrumentationKey=‹«h8»-«h4»-«h4»-«h4»-«h12»›;IngestionEndpoint=https://x/
ABLY_API_KEY=‹«a6».«a6»:«a43»›
ably: ‹«a6».«a6»:«a43»›
deepl ‹«h8»-«h4»-«h4»-«h4»-«h12»:fx›
FAL_KEY=‹«h8»-«h4»-«h4»-«h4»-«h12»:«h32»›
SOME_BEARER=‹«a50»›
GAME_ACCESS=‹«a43»›
todoist api: ‹«h40»›
Authorization: GenieKey ‹«h8»-«h4»-«h4»-«h4»-«h12»›
‹secret-live-«a36»›
‹signkey-prod-«h64»›
‹tr_prod_«a24»›
‹xaat-«h8»-«h4»-«h4»-«h4»-«h12»›
‹xau_«a36»›
‹fnAE«a36»›
‹ATTA«h72»›
‹cal_live_«h32»›
‹cfut_«a48»›
‹IGQVJ«a150»›
bearer of the app: ‹AAAAAAAAAAAAAAAAAAAAA«a70»›
‹K001«a27»›
‹sk-litellm-«a22»›
untrusted comment: minisign encrypted secret key⏎‹RWRTY0Iy«a204»›
honeycomb_key=‹«h32»›
algolia: "‹«l32»›"
circleci_key = ‹«h40»›
kagi_key: ‹«a11».«a43»›
STS credentials ‹STS.Nz«a30»›
‹rnd_«a28»›
CLICKUP ‹pk_«d8»_«U32»›
sc_«l12».«l4».‹acc-«l16».«a44»›
‹prf_«a32»›
‹xai-«a40»_«a40»›
`
