package redact

const (
	uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	// vendorValue is a key of a vendor whose keys have no prefix.
	vendorValue = `[0-9a-f]{32}\.[a-z0-9_-]{16,24}|` + uuid + `(?::[0-9a-f]{32}|-[0-9a-f]{12})?|[en][ua]1\.[a-z0-9]{20,}|[a-z0-9_-]{11}\.[a-z0-9_-]{43}|[a-z0-9]{24}:[a-z0-9]{10,64}|[a-z0-9_-]{6}\.[a-z0-9_-]{6}:[a-z0-9_-]{43}|key[a-z0-9]{14}|[a-z0-9_+/=-]{20,100}`
)

// vendorRules are for keys of vendors as gitleaks' and betterleaks' rules list them: behind the name of a vendor, and with
// further prefixes.
var vendorRules = []Rule{
	vendors(`adafruit|aiven|algolia|airtable|amplitude|asana|assembly_?ai|bitbucket|bitly|bitrise|bittrex|clickup|cloudflare|cloudinary|`+
		`codecov|cohere|coinbase|confluent|contentful|couchbase|coveralls|datadog|deepgram|deepseek|discord|disqus|drone_?ci|dropbox|`+
		`exoscale|facebook|fastly|finicity|finnhub|flickr|freshbooks|fullstory|gitea|gitter|gocardless|greptile|gumroad|`+
		`heroku|hubspot|ibm_?cloud|infomaniak|influx(?:db)?|intercom|jumpcloud|klaviyo|kucoin|larksuite|launchdarkly|`+
		`linked_?in|mailgun|mattermost|meraki|message_?bird|mistral|moonshot|netlify|new_?relic|nytimes|okta|ollama|openweather|`+
		`pinecone|plivo|polymarket|rapidapi|scaleway|sendbird|sentry|snyk|sonar|squarespace|sslmate|sumologic|telnyx|twitch|twitter|`+
		`upstage|vercel|wakatime|wandb|weatherstack|workos|yandex|zendesk|z_?ai|dd|`+
		`ably|abuseipdb|deepl|etherscan|fal(?:[_.-]?ai)?|gemfury|hetzner|quandl|rapyd|roboflow|shodan|spoonacular|steam|strava|tavily|tiingo|tmdb|todoist|trello|unsplash|virustotal|zeplin`,
		"adafruit", "aiven", "algolia", "airtable", "amplitude", "asana", "assemblyai", "assembly_ai", "bitbucket", "bitly", "bitrise", "bittrex",
		"clickup", "cloudflare", "cloudinary", "codecov", "cohere", "coinbase", "confluent", "contentful", "couchbase", "coveralls", "datadog",
		"deepgram", "deepseek", "discord", "disqus", "droneci", "drone_ci", "dropbox", "exoscale", "facebook", "fastly",
		"finicity", "finnhub", "flickr", "freshbooks", "fullstory", "gitea", "gitter", "gocardless", "greptile", "gumroad",
		"heroku", "hubspot", "ibmcloud", "ibm_cloud", "infomaniak", "influx", "intercom", "jumpcloud", "klaviyo", "kucoin", "larksuite",
		"launchdarkly", "linkedin", "linked_in", "mailgun", "mattermost", "meraki", "message_bird", "messagebird", "mistral", "moonshot",
		"netlify", "new_relic", "newrelic", "nytimes", "okta", "ollama", "openweather", "pinecone", "plivo", "polymarket",
		"rapidapi", "scaleway", "sendbird", "sentry", "snyk", "sonar", "squarespace", "sslmate", "sumologic", "telnyx", "twitch",
		"twitter", "upstage", "vercel", "wakatime", "wandb", "weatherstack", "workos", "yandex", "zendesk", "zai_api", "z_ai", "dd-api",
		"dd_api", "dd-app", "dd_app", "ably:", "ably_", "ably=", "abuseipdb", "deepl", "etherscan", "fal_key", "fal-key", "fal_ai", "fal-ai", "fal.ai", "gemfury", "hetzner", "quandl", "rapyd", "roboflow",
		"shodan", "spoonacular", "steam", "strava", "tavily", "tiingo", "tmdb", "todoist", "trello", "unsplash", "virustotal", "zeplin"),
	vendors(`alphavantage|atlassian|auth0|beamer|binance|browserstack|bugsnag|cloudsmith|codacy|coinmarketcap|configcat|`+
		`confluence|data\.gov|digitalocean|elevenlabs|etsy|giphy|honeycomb|huggingface|ipinfo|kagi|kraken|lighton|linode|loggly|`+
		`mailjet|mandrill|mapbox|mapquest|mixpanel|newsapi|nexmo|ngrok|onesignal|opencage|opsgenie|pagerduty|papertrail|`+
		`paypal|perplexity|pexels|plaid|postmark|private_?ai|pubnub|pyowm|rollbar|saucelabs|semgrep|sparkpost|splunk|`+
		`spotify|tomtom|vimeo|vonage|vultr|weightsandbiases|(?:box|circle(?:ci)?|civo|glm|ibm|jira|kimi|lark|linear|looker|ovh|paradigm|`+
		`pusher|reddit|segment|square|stripe|sumo|travis|zoom)_`,
		"alphavantage", "atlassian", "auth0", "beamer", "binance", "browserstack", "bugsnag", "cloudsmith", "codacy",
		"coinmarketcap", "configcat", "confluence", "data.gov", "digitalocean", "elevenlabs", "etsy", "giphy", "honeycomb",
		"huggingface", "ipinfo", "kagi", "kraken", "lighton", "linode", "loggly", "mailjet", "mandrill", "mapbox", "mapquest",
		"mixpanel", "newsapi", "nexmo", "ngrok", "onesignal", "opencage", "opsgenie", "pagerduty", "papertrail",
		"paypal", "perplexity", "pexels", "plaid", "postmark", "privateai", "private_ai", "pubnub", "pyowm",
		"rollbar", "saucelabs", "semgrep", "sparkpost", "splunk", "spotify", "tomtom", "vimeo", "vonage", "vultr", "weightsandbiases",
		"box_", "circle_", "circleci_", "civo_", "glm_", "ibm_", "jira_", "kimi_", "lark_", "linear_", "looker_", "ovh_", "paradigm_",
		"pusher_", "reddit_", "segment_", "square_", "stripe_", "sumo_", "travis_", "zoom_"),
	token("adafruit", "https://io.adafruit.com/api/docs/", `aio_[A-Za-z0-9]{28}\b`, "aio_"),
	token("alibaba-sts", "https://www.alibabacloud.com/help/ram/developer-reference/api-sts-2015-04-01-assumerole",
		`(?:CAIS[A-Za-z0-9+/_-]{60,}={0,2}|STS\.[A-Za-z0-9]{16,64}\b)`, "CAIS", "STS."),
	token("checkout", "https://www.checkout.com/docs/developer-resources/api/manage-api-keys", `sk_(?:sbox_|test_)?`+uuid, "sk_"),
	token("databento", "https://databento.com/docs/api-reference-historical/basics/authentication", `db-[A-Za-z0-9]{29}\b`, "db-"),
	token("ebay", "https://developer.ebay.com/api-docs/static/creating-edp-account.html",
		`PRD-[a-f0-9]{8,12}(?:-[a-f0-9]{4}){3}-[a-f0-9]{4,12}\b`, "PRD-"),
	token("endor", "https://docs.endorlabs.com/administration/api-keys/", `endr\+[A-Za-z0-9-]{16}`, "endr+"),
	token("honeycomb", "https://docs.honeycomb.io/configure/environments/manage-api-keys/", `hc[a-z]{2}[a-z]_[a-z0-9]{58}\b`,
		"hcaik_", "hcbik_", "hcxik_", "hcxlk_", "hcalk_", "hcamk_", "hcaic_"),
	token("hubspot", "https://developers.hubspot.com/docs/guides/apps/private-apps/overview", `(?i)pat-(?:na|eu|ap)\d-`+uuid,
		"pat-na", "pat-eu", "pat-ap"),
	token("infracost", "https://www.infracost.io/docs/", `ico-[A-Za-z0-9]{32}\b`, "ico-"),
	token("intra42", "https://api.intra.42.fr/apidoc/guides/getting_started", `s-s4t2(?:ud|af)-[a-f0-9]{64}\b`, "s-s4t2"),
	token("jwt", "https://www.rfc-editor.org/rfc/rfc7519", `ZXlK(?:aGJHY2lPaU|MGVYQWlPaU|cmFXUWlPaU)[A-Za-z0-9+/]{60,}={0,2}`,
		"ZXlKaGJHY2lPaU", "ZXlKMGVYQWlPaU", "ZXlKcmFXUWlPaU"),
	token("launchdarkly", "https://launchdarkly.com/docs/home/account/api", `(?:sdk|api|mob)-`+uuid+`\b`,
		append(hexAfter("sdk-"), append(hexAfter("api-"), hexAfter("mob-")...)...)...),
	token("lob", "https://docs.lob.com/#tag/Authentication", `(?:live|test)_pub_[a-f0-9]{31}\b`, "live_pub_", "test_pub_"),
	token("notify", "https://docs.notifications.service.gov.uk/rest-api.html#headers", `gcntfy-[\w-]{1,40}-`+uuid+`-`+uuid, "gcntfy-"),
	token("postman", "https://learning.postman.com/docs/collections/using-newman-cli/", `PMAT-[A-Z0-9]{26}\b`, "PMAT-"),
	random(3.8, token("proof", "https://dev.proof.com/reference/authentication", `prf_(?:cli_)?[\w-]{20,80}`, "prf_")),
	token("rainforest", "https://docs.rainforestpay.com/", `apikey_[a-f0-9]{64}\b`, "apikey_"),
	{
		Name:     "salesforce",
		Source:   "https://help.salesforce.com/s/articleView?id=xcloud.remoteaccess_oauth_flows.htm",
		Pattern:  `\b(00D[A-Za-z0-9]{12}!AQ[A-Za-z0-9._-]{80,260})`,
		Literals: []string{"!AQ"}, Before: 20, After: 300,
	},
	token("telnyx", "https://developers.telnyx.com/docs/account-setup/api-keys", `KEY0[A-Za-z0-9]{31}_[A-Za-z0-9]{22}\b`, "KEY0"),
	token("vercel-blob", "https://vercel.com/docs/vercel-blob/using-blob-sdk", `vercel_blob_rw_[A-Za-z0-9]{16,}_[A-Za-z0-9]{24,}`,
		"vercel_blob_rw_"),
	{
		Name:     "tableau",
		Source:   "https://help.tableau.com/current/server/en-us/security_personal_access_tokens.htm",
		Pattern:  `(?:^|[^A-Za-z0-9+/])([A-Za-z0-9+/]{22}==:[A-Za-z0-9]{32})\b`,
		Literals: []string{"==:"}, Before: 24, After: 40,
	},
}

// vendors returns a rule for what is as random as a key behind the names of vendors.
func vendors(names string, literals ...string) Rule {
	return Rule{
		Name: "vendor-key", Source: "https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml",
		Pattern: `(?i)(?:^|[^a-z])(?:` + names + `)(?:[ \t_.-]{0,2}[a-z]+){0,4}["'\]]{0,2}[ \t]*(?:(?::=|=>|\?=|=|:)[ \t]*["'` + "`" + `]?|,[ \t]*["'` + "`" + `])(` +
			vendorValue + `)(?:[^\w+/=.@-]|\z)`,
		Literals: literals, Fold: true, near: vendor, Before: 4, After: 192, Entropy: 3, loose: true,
	}
}
