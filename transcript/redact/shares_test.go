package redact

import (
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/planted"
)

// shown are lines of transcripts in which a text occurs as it is.
var shown = map[string]func(text string) string{
	"prompt": func(s string) string {
		return `{"type":"user","message":{"role":"user","content":` + quote("Look at this:\n"+s+"\nthanks") + `}}`
	},
	"answer": func(s string) string {
		return `{"type":"assistant","message":{"content":[{"type":"text","text":` + quote("Here:\n\n```\n"+s+"\n```\n") + `}]}}`
	},
	"command": func(s string) string { return toolUse("Bash", map[string]any{"command": s, "description": "Run it"}) },
	"output": func(s string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","content":` + quote("$ run\n"+s+"\n") +
			`}]},"toolUseResult":{"stdout":` + quote(s) + `,"stderr":"","interrupted":false}}`
	},
	"write": func(s string) string {
		return toolUse("Write", map[string]any{"file_path": "/w/x", "content": "first\n" + s + "\nlast\n"})
	},
	"edit": func(s string) string {
		return toolUse("Edit", map[string]any{"file_path": "/w/x", "old_string": "x", "new_string": s})
	},
	"JSON in a result": func(s string) string { return result(quote(map[string]any{"ok": true, "body": s})) },
	"diff":             func(s string) string { return result("@@ -1 +1 @@\n-old\n" + eachLine(s, numbered["diff -u"])) },
	"percent-encoded":  func(s string) string { return result("GET /log?line=" + url.QueryEscape(s) + " 200") },
	"Read":             func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["Read"])) },
	"Read, newer":      func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["Read, newer"])) },
	"cat -n":           func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["cat -n"])) },
	"grep -n":          func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["grep -n"])) },
	"grep -rn":         func(s string) string { return result(eachLine(s, numbered["grep -rn"])) },
}

// asNumbered are the positions that must show no more than plain ones.
var asNumbered = []string{"Read", "Read, newer", "cat -n", "grep -n", "grep -rn"}

func toolUse(name string, input map[string]any) string {
	return `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"` + name + `","input":` + quote(input) + `}]}}`
}

func result(text string) string {
	return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":` + quote(text) + `}]}}`
}

// TestShares demands that of all shapes in all positions a share is masked, by class, and that what numbers its lines
// shows nothing that is masked elsewhere.
func TestShares(t *testing.T) {
	t.Parallel()
	m, r := masker(t), rand.New(rand.NewPCG(11, 12))
	shapes := planted.Shapes()
	tried, found := map[planted.Class]int{}, map[planted.Class]int{}
	for _, s := range shapes {
		var missed []string
		text, secret := s.Make(r)
		for _, place := range slices.Sorted(maps.Keys(shown)) {
			in := shown[place](text)
			out, _ := m.Line([]byte(in))
			check(t, m, in, string(out))
			tried[s.Class]++
			if !leaks(string(out), secret) {
				found[s.Class]++
				continue
			}
			missed = append(missed, place)
			if testing.Verbose() {
				t.Logf("%s in %s: %s", s.Name, place, out)
			}
		}
		if len(missed) > 0 {
			t.Logf("%s: %s: missed in %q", s.Class, s.Name, missed)
			kit.Check(t, s.Class != planted.Tokens || len(missed) != len(shown), "%s is masked nowhere", s.Name)
			for _, place := range missed {
				kit.Check(t, !slices.Contains(asNumbered, place) || slices.Contains(missed, "prompt"),
					"%s is masked in a prompt, but not by %s", s.Name, place)
			}
		}
	}
	for class, least := range map[planted.Class]float64{planted.Tokens: 0.98, planted.Files: 0.95, planted.Commands: 0.9} {
		share := float64(found[class]) / float64(tried[class])
		t.Logf("%s: %d of %d, %.1f %%", class, found[class], tried[class], 100*share)
		kit.Check(t, share >= least, "%s: %.3f is masked, want %.2f", class, share, least)
	}
	kit.Check(t, len(shapes) >= 300, "%d shapes", len(shapes))
	t.Logf("%d shapes in %d places", len(shapes), len(shown))
}

// TestNoSecrets leaves code, locks, hashes and prose as they are.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	m, r := masker(t), rand.New(rand.NewPCG(13, 14))
	digits := func(n int, from string) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = from[r.IntN(len(from))]
		}
		return string(b)
	}
	const hex, base64 = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var all []string
	for range 400 {
		all = append(all, digits(40, hex)+" refs/heads/main", "uses: sentry-action, "+digits(40, hex), "github.com/a/b v1.2.3 h1:"+digits(43, base64)+"=",
			`"integrity": "sha512-`+digits(86, base64)+`==",`, "sha256:"+digits(64, hex), digits(76, base64),
			`  "resolved": "https://registry.example/a/-/a-1.2.3.tgz#`+digits(40, hex)+`",`, `"key": "`+digits(32, hex)+`"`,
			digits(64, base64)+"\nEAAA"+digits(60, base64)+"\nAQE"+digits(61, base64)+"\n"+digits(20, base64),
			digits(8, hex)+"-"+digits(4, hex)+"-"+digits(4, hex)+"-"+digits(4, hex)+"-"+digits(12, hex))
	}
	all = append(all, strings.Split(noSecrets, "\n")...)
	for _, line := range all {
		for _, in := range []string{line, quote(line), "     7→" + line} {
			if out, ranges := m.Text([]byte(in)); len(ranges) > 0 {
				t.Errorf("%s: %q became %q", ranges[0].Rule, in, out)
			}
		}
	}
}

// noSecrets are lines that have the names of secrets, and none.
const noSecrets = `PASS: internal/shop/cart_test.go:41
	password := os.Getenv("DB_PASSWORD")
	token, err := client.GetToken(ctx, "read:org")
	Token: []string{"module", "a"},
	srcConnID, token: token, SecretKey: []byte{0x01, 0x02},
	type PrivateKey = ed25519.PrivateKey
	FS_IOC_ADD_ENCRYPTION_KEY = 0xc0506617
	config.PrivateKey = testRSA2048PrivateKey
	r.passphrase = passphrase
	pk.PrivateKey = &ecdsa.PrivateKey{PublicKey: pub}
	c.Authorization = &Authorization{Credentials: c.BearerToken}
	if sslOptions.GetSSLPassword == GetSSLPassword {
	req.Header.Set("Authorization", "Bearer "+token.AccessToken)
	response.headers.set('x-local-cache-key', encodeURIComponent(this.key))
	password: process.env.DB_PASSWORD,
	const secret = config.get('session.secret')
	password = getpass.getpass("Password: ")
	secretName: db-credentials
	valueFrom: {secretKeyRef: {name: db, key: password}}
	DB_PASSWORD=${DB_PASSWORD:-changeme}
	PASSWORD=$(cat /run/secrets/db)
	password: "{{ vault_db_password }}"
	<password>${env.MAVEN_PASSWORD}</password>
	mysql -u root -p app < dump.sql
	docker run -p 8080:80 -e POSTGRES_PASSWORD nginx
	ssh -p 2222 kim@host && mkdir -p a/b && zip -r a.zip b
	curl -u "$USER:$PASSWORD" https://h/ && curl -b cookies.txt https://h/
	7z x a.7z && unzip a.zip -d b && openssl rsa -passin env:PASS -in k
	CREATE USER kim IDENTIFIED BY :password
	the password is secret, and the token is in the keychain; secret: none
	max_tokens: 4096, input_tokens=12000, "cache_read_input_tokens": 81234
	--token-limit 32000 --password-file /run/secret --max-tokens=8192
	--- PASS: TestMaskedTokens2024 (0.00s)
	passed=128 failed=0 bypass=true compass: north passenger: 2b
	import { Token, SecretStore, PasswordField } from './auth2/tokens'
	"@babel/plugin-transform-token": "^7.24.1", "keytar": "7.9.0"
	color: #a1b2c3d4; background: url(data:image/png;base64,iVBORw0KGgo=)
	https://example.com/login?next=/a&page_token=abcdef123456&tab=keys
	primaryKey: "user:123:profile", cacheKey: 'v2:main', sortKey: "created2"
	key=value pair; keys = sorted(d.keys()); api_key_header: X-Api-Key
	monkey: 12ab34cd56ef, turkey=istanbul2024, hockey: a1b2c3d4e5f6
	let session_key = kem::PrivateKey::derive(seed); let hmac_key = mac::Key::from(raw)
	OAuth1RefreshToken refreshToken = (OAuth1RefreshToken) issued;
	return find(accessToken, OAuth1TokenKind.REFRESH_TOKEN);
	Ec256PrivateKey SIGNING_PRIVATE_KEY = (Ec256PrivateKey) Keys.FIRST;
	val credential: X509ClientCredential = X509ClientCredential.of(cert)
	login.badCredentials=Ungültige Anmeldung
	login.badCredentials=Ung\\u00fcltige Anmeldung
	login.emptyPassword=Tu\\u0161\\u010dias slapta\\u017eodis
	Set-Cookie: theme=darkmode; Domain=shop.example.com; Path=/; Expires=Sat, 13 Feb 2027 11:56:27 GMT; HttpOnly; SameSite=Lax
	headers.append('Set-Cookie', 'lang=en; Max-Age=31536000; Secure; Path=/a/b2')
	Authorization: %s4-HMAC-SHA256 Credential=%s
	a row is identified by "rowname1"
	"Server-TLS11-Reject": "PASS", "Client-TLS12-NoSign-RSA_SHA1": "PASS", "Last9": "PASS"
	print(f"password={password!r}")
	const secretValue = 0x53c2_37ff
	ownerPrivateKey: Uint8Array, teeKey: Promise<Uint8Array>, folderKey = new Float64Array(2), let private_key = vec![0u8; 32];
	github.com/getsentry/sentry-go v0.27.0 h1:Pv98CIbtB3LkMWmXi4Joa5OOcwbmnX88sF5qbK3r3Ps=
	- uses: codecov/codecov-action@e28ff129e5465c2c0dcc6f003fc735cb6ba0c673 # v4
	const [password, setPassword] = useState("")
	privateKey: ed25519Seed, refreshToken = body?.refreshToken; userPrivateKey: auth.vaultKeypair!.privateKey,
	refreshToken = req.cookies?.['refresh_token'];
	bitbucket commit: 0123456789abcdef0123456789abcdef01234567
	sentry release sha=89abcdef0123456789abcdef0123456701234567
	cohere := NewCohereEmbed3ClientX7(cfg)
	privateKey: Uint8Array<ArrayBuffer>; secretKey: Uint8Array | null
	Password        *uint16
PASS src/utils/b64url.test.ts
 PASS  tests/e2e/login2fa.spec.tsx
PASS: gdb.base/foo2bar.exp
password  internal/auth/sha1hash.go
Error: secret "regcred" not found
secret "db-credentials" deleted
	{{ Form::password('current_password') }} $table->password('user_password');
	page.password("label.password2")
	CACHE_KEY: node-modules-v2-16.14.0-linux
	S3_KEY=backups/db/2024-05-01.tar.gz
	ROUTING_KEY=orders.created.v1.eu-west-1, REDIS_KEY="user:123:session:recent_items"
	netlify env:set NODE_VERSION 18.17.0 && glab variable set NODE_ENV production
	ngrok authtoken --help; cloudflared service install --help; radtest --help; vault login --no-store
	mosquitto_passwd -b passwordfile username
	pa-11y-ci-runner-for-github-actions-and-more-things/pa-voter-registration-deadlines-and-county-offices
	INSERT INTO audit (event, password_changed_at) VALUES ('login', '2026-01-02T03:04:05Z');
	insert into u (id, name, pass_since) values (1, 'kim', '2026-01-02t03:04:05.678+01:00');
	password_expires: 2026-01-02T03:04:05.678Z, secret_rotated_at = "2026-01-02T03:04:05+00:00"
	socket.send("hello-world1"); // pass the message
	ws.send('ping-frame2') // it passes through
	expect(page).toPass(); send("hello-world1")
	bb_test_helper_for_integration_suites, bb_live_region_announcements_component, sk-helicone-proxy-configuration-guide
	password: |
	-----BEGIN CERTIFICATE----- and ssh-ed25519 keys are public`

// TestStillSecrets: what looks like TestNoSecrets' lines and is a secret.
func TestStillSecrets(t *testing.T) {
	m := parallel(t)
	token := "EAAA" + strings.Repeat("l9Qf7LutEf7h73VXfBwh", 3)
	for in, secret := range map[string]string{
		"Set-Cookie: sid=8f3kQ29dLx0aPz; Path=/; HttpOnly":                                 "8f3kQ29dLx0aPz",
		"Cookie: theme=dark; lang=en; session=a81bc9d2e4f07731":                            "a81bc9d2e4f07731",
		"create user shop identified by 'Vk7Qp2Lm9x'":                                      "Vk7Qp2Lm9x",
		"create user a identified by 'x', b@h identified by \"Vk7Qp2Lm9x\"":                "Vk7Qp2Lm9x",
		"grant all on *.* to 'kim'@'%' identified by 'Vk7Qp2Lm9x'":                         "Vk7Qp2Lm9x",
		"ALTER USER kim IDENTIFIED BY Vk7Qp2Lm9x;":                                         "Vk7Qp2Lm9x",
		"create database link l connect to kim identified by Vk7Qp2Lm9x using 'db'":        "Vk7Qp2Lm9x",
		"d.put(\"db.password\", \"Vk7Qp2Lm9x\")":                                           "Vk7Qp2Lm9x",
		"set(\n  'client_secret',\n  'Vk7Qp2Lm9x',\n)":                                     "Vk7Qp2Lm9x",
		"INSERT INTO users VALUES ('kim', PASSWORD('Vk7Qp2Lm9x'))":                         "Vk7Qp2Lm9x",
		"update users set pw=password('Vk7Qp2Lm9x')":                                       "Vk7Qp2Lm9x",
		"CREATE SECRET s (TYPE s3, SECRET 'Vk7Qp2Lm9x')":                                   "Vk7Qp2Lm9x",
		"FAL_KEY=01234567-89ab-4cde-8f01-23456789abcd:0123456789abcdef0a23456789abcdef":    "0123456789abcdef0a23456789abcdef",
		"glab variable set DEPLOY_TOKEN Vk7Qp2Lm9x":                                        "Vk7Qp2Lm9x",
		"netlify env:set API_SECRET Vk7Qp2Lm9x":                                            "Vk7Qp2Lm9x",
		"radtest kim Vk7Qp2Lm9x localhost 0 secret":                                        "Vk7Qp2Lm9x",
		"mosquitto_passwd -b /etc/passwd kim Vk7Qp2Lm9x":                                   "Vk7Qp2Lm9x",
		"sk-helicone-aizk36y-5yue2my-qmy5tza-n7x3aqa":                                      "aizk36y-5yue2my-qmy5tza-n7x3aqa",
		"bb_live_Zk3xQ9wLz7hK3x9QwLz7aB1cD2e":                                              "Zk3xQ9wLz7hK3x9QwLz7aB1cD2e",
		"pa-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f, ":                                 "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f",
		"passphrase: {Vk7Qp2Lm9x)tokenset":                                                 "Vk7Qp2Lm9x",
		"connect(password=Vk7Qp2Lm9x)":                                                     "Vk7Qp2Lm9x",
		"api-key: irOCGwD2394HWOBn7Sv2zgTqLdc17TOUtoken{\"user\"":                          "irOCGwD2394HWOBn7Sv2",
		"db.password=Vk7Qp2Lmüx9":                                                          "Vk7Qp2Lmüx9",
		"tokens:\n" + token + "\n" + strings.Replace(token, "Qf7", "Xw3", 1) + "\nthe end": strings.Replace(token, "Qf7", "Xw3", 1),
		"MIIB" + strings.Repeat("aGVsbG8gd29ybGQh", 4) + "\n\n" + token + "\n":             token,
	} {
		for _, shown := range []string{in, quote(in), `{"type":"user","message":{"content":` + quote(in) + `}}`} {
			out, _ := m.Line([]byte(shown))
			kit.Check(t, !strings.Contains(string(out), secret) && !strings.Contains(string(out), strings.Trim(quote(secret), `"`)), "%q became %q", shown, out)
		}
	}
}
