package planted

// files are parts of files with secrets, one a line; ⏎ is the end of a line in them.
const files = `
PORT=80⏎DB_PASSWORD=‹«p16»›⏎DEBUG=1
export API_TOKEN='‹«p24»›'
STRIPE_WEBHOOK_SECRET="‹«a32»›"
APP_KEY=base64:‹«a43»=›
RAILS_MASTER_KEY=‹«h32»›
config/master.key:1:‹«h32»›
secret_key_base: ‹«h128»›
SECRET_KEY = '‹django-insecure-«p50»›'
  'PASSWORD': '‹«p16»›',
DATABASE_URL=postgres://app:‹«a20»›@db.internal:5432/app
DATABASE_URL=mysql://root:‹«a16»›@127.0.0.1/app
MONGO_URI=mongodb+srv://app:‹«a18»›@c0.x1.mongodb.net/app
REDIS_URL=redis://:‹«a20»›@cache:6379/0
AMQP=amqp://svc:‹«a16»›@mq:5672/%2f
SMTP_PASS=‹«p14»›
db:⏎  user: app⏎  password: ‹«p16»›⏎  port: 5432
spring:⏎  datasource:⏎    password: ‹«p16»›
spring.datasource.password=‹«p16»›
    passwd = ‹«p12»›
password=‹«p14»›⏎user=root
[client]⏎user=root⏎password="‹«p14»›"
[mysqld]⏎master-password = ‹«p16»›
kim:‹$apr1$«a8»$«a22»›
kim:‹$2y$10$«a53»›
kim:{SHA}‹«a27»=›
root:‹$6$«a16»$«a86»›:19000:0:99999:7:::
root:‹$y$j9T$«a22»$«a43»›:19000:0:99999:7:::
db.internal:5432:app:kim:‹«p16»›
*:*:*:kim:‹«a16»›
localhost:5432:app:app:‹«a14»›
machine shop.example login kim password ‹«p16»›
machine shop.example⏎  login kim⏎  password ‹«p16»›
default login ftp password ‹«a12»›
<server>⏎  <username>ci</username>⏎  <password>‹«p16»›</password>⏎</server>
<passphrase>‹«p20»›</passphrase>
<add key="ApiKey" value="‹«a32»›" />
<add key="ClearTextPassword" value="‹«p20»›" />
<property name="hibernate.connection.password" value="‹«p16»›"/>
<entry key="db.password">‹«p16»›</entry>
<connectionStrings><add name="D" connectionString="Server=db;Database=a;User Id=sa;Password=‹«a16»›;" /></connectionStrings>
"DefaultConnection": "Server=db;Database=a;Uid=sa;Pwd=‹«a16»›;Encrypt=True"
<machineKey validationKey="‹«h128»›" decryptionKey="AutoGenerate" />
define('DB_PASSWORD', '‹«p16»›');
define( 'AUTH_KEY',         '‹«p64»›' );
define('SECURE_AUTH_SALT', '‹«p64»›');
ansible_ssh_pass=‹«p14»›
host1 ansible_user=kim ansible_password=‹«a14»› ansible_port=22
ansible_become_password: ‹«p14»›
PrivateKey = ‹«a43»=›
[Peer]⏎PresharedKey = ‹«a43»=›
b3BlbnNzaC1rZXktdjE‹AAAAABG5vbmU«a80»›
-----BEGIN OPENSSH PRIVATE KEY-----⏎‹b3BlbnNzaC1rZXktdjEAAAAA«a46»⏎«a70»⏎«a40»›⏎-----END OPENSSH PRIVATE KEY-----
-----BEGIN EC PRIVATE KEY-----⏎‹«a64»⏎«a64»⏎«a40»›⏎-----END EC PRIVATE KEY-----
client-key-data: ‹LS0tLS1CRUdJTiBSU0Eg«a120»›
  tls.key: ‹LS0tLS1CRUdJTiBQUklWQVRF«a160»›
kind: Secret⏎data:⏎  password: ‹«a20»=›
kind: Secret⏎stringData:⏎  api-key: ‹«a32»›
"auths": {"registry.example.com": {"auth": "‹«a32»=›"}}
.dockerconfigjson: ‹eyJhdXRocyI6«a90»›
//registry.example/:_authToken=‹«a36»›
//npm.pkg.example.com/:_password=‹«a24»=›
_auth = ‹«a32»=›
npmAuthToken: "‹«a36»›"
[pypi]⏎username = __token__⏎password = ‹«a40»›
[registry]⏎token = "‹«a32»›"
signing.password=‹«p16»›
ossrhPassword=‹«p16»›
systemProp.https.proxyPassword=‹«p16»›
https://kim:‹«a40»›@git.example.com
db_password = "‹«p20»›"
variable "p" {⏎  default_password = "‹«p20»›"⏎}
"master_password": "‹«p20»›",
"secret": "‹«a32»›"
"clientSecret": "‹«a40»›"
"private_key_id": "‹«h40»›"
"refresh_token": "‹«a60»›"
"access_token": "‹«a60»›"
"token": "‹«a40»›"
"apiKey":"‹«a39»›"
"connectionString": "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=‹«a86»==›;"
Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=R;SharedAccessKey=‹«a43»=›
"kty": "RSA", "n": "x", "d": "‹«a80»›"
network={⏎  ssid="home"⏎  psk="‹«p16»›"⏎}
psk=‹«h64»›
pass = ‹«a40»›
secret_key = ‹«a40»›
aws_session_token = ‹«a200»›
      POSTGRES_PASSWORD: ‹«p16»›
      - MYSQL_ROOT_PASSWORD=‹«p16»›
      - "RABBITMQ_DEFAULT_PASS=‹«p16»›"
ENV DB_PASSWORD ‹«p16»›
ENV API_SECRET="‹«p20»›"
ARG NPM_TOKEN=‹«a36»›
env:⏎  - name: DB_PASSWORD⏎    value: "‹«p16»›"
basic_auth:⏎  username: prom⏎  password: ‹«p16»›
requirepass ‹«p24»›
masterauth ‹«p24»›
bindpw ‹«p16»›
rootpw ‹«p16»›
olcRootPW: ‹{SSHA}«a32»›
smtp_sasl_password_maps = static:kim:‹«a16»›
[smtp.example.com]:587 kim:‹«a16»›
wpa_passphrase=‹«p16»›
ppp "kim" * "‹«p16»›"
PASSWORD: '‹«p16»›'
password: !vault-plain ‹«p20»›
proxy_password=‹«p14»›
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="kim" password="‹«a16»›";
ssl.keystore.password=‹«a14»›
SNOWFLAKE_PASSWORD=‹«p18»›
$config['encryption_key'] = '‹«a32»›';
$db['default']['password'] = '‹«p16»›';
'password' => '‹«p16»›',
'key' => 'base64:‹«a43»=›',
:password => "‹«p16»›",
config.secret_key = "‹«h64»›"
JWT_SECRET=‹«p40»›
jwt.secret: ‹«p40»›
session_secret: "‹«a40»›"
COOKIE_SECRET=‹«a32»›
GF_SECURITY_ADMIN_PASSWORD=‹«p14»›
credentials:⏎  username: kim⏎  password: ‹«p14»›
<pre>db:5432:*:app:‹«p18»›</pre>
<servers><server><password>‹{«a40»=}›</password></server></servers>
secret_key_base: "‹«h128»›"
npmAuthIdent: "kim:‹«a20»›"
BUNDLE_RUBYGEMS__PKG__GITHUB__COM: kim:‹«a40»›
"github-oauth": {"github.com": "‹«h40»›"}
"bearer": {"repo.example.com": "‹«a40»›"}
<property><name>javax.jdo.option.ConnectionPassword</name><value>‹«p16»›</value></property>
<key>ClientSecret</key>⏎<string>‹«a32»›</string>
<setting name="Token" serializeAs="String"><value>‹«a32»›</value></setting>
<wsse:Password Type="x">‹«p16»›</wsse:Password>
hibernate.connection.password ‹«p16»›
dsn = "user:‹«a16»›@tcp(127.0.0.1:3306)/app"
rabbitmq:⏎  auth: {username: kim, password: ‹«a16»›}
      command: redis-server --requirepass ‹«p16»›
    command: ["redis-server", "--requirepass", "‹«p16»›"]
secret "db" {⏎  value = "‹«p20»›"⏎}
admin_password                   = "‹«p16»›"
"administratorLoginPassword": { "value": "‹«p16»›" }
ldap_bind_pw = ‹«p16»›
proxy_set_header Authorization "Basic ‹«a24»==›";
proxy_set_header X-Api-Key ‹«a32»›;
snmp-server community ‹«a14»› RO
tacacs-server key ‹«a16»›
crypto isakmp key ‹«a16»› address 192.0.2.4
kim : PSK "‹«p16»›"
msg="login; token: ‹«h64»›"
machine	shop.example	login	kim	password	‹«p18»›
machine shop.example login "kim" password "‹«p18»›"
password: |⏎  ‹«p18»›⏎user: kim
db_password: >-⏎    ‹«p18»›
password: !!binary |⏎    ‹«a27»=›
password = """‹«p16»›"""
account x⏎user kim⏎password	‹«p16»›
ldap.bind.credentials=‹«p16»›
key "rndc" {⏎  secret "‹«a43»=›";⏎};
poll mail.example.com user "kim" password "‹«p16»›"
kim	*	‹«a16»›	*
"kim"  *  "‹«a14»›"  *
kim:1001:«h32»:‹«h32»›:::
-----BEGIN OpenVPN Static key V1-----⏎‹«h32»⏎«h32»⏎«h32»⏎«h32»›⏎-----END OpenVPN Static key V1-----
user kim on sanitize-payload >‹«a18»› ~* +@all
password: !!str ‹«p16»›
token: !!str "‹«a24»›"
  password: <%= ENV.fetch("PW", "‹«p16»›") %>
remote_password ‹«a14»›
    auth_pass ‹«a8»›
storePassword "‹«p14»›"
neighbor 192.0.2.1 password ‹«a14»›
ip ospf message-digest-key 1 md5 ‹«a14»›
10 SHA1 ‹«h40»›
rpcauth=kim:«h32»$‹«h64»›
kim:$7$101$«a16»$‹«a86»==›
"Jwt": { "Key": "‹«a44»›", "Issuer": "x" }
enable⏎ password 0 ‹«a13»7›
wpa-psk ascii 0 ‹«a13»7›
userPassword:: ‹e1NTSEF9«a40»›
private key 0x‹«h64»›
"master_password": {"sensitive": true, "value": "‹«p20»›"}
[passwords]⏎kim = ‹«p16»›
[users]⏎harry = guest⏎sally = ‹«p16»›
"credentials": {"user": "kim", "deploy": "‹«p16»›"}
chpasswd:⏎  list: |⏎    root:‹«p16»›
relay.example.com kim@example.com:‹«p16»›
smtp.example.com:kim@example.com:‹«p16»›
  client_send = : kim : ‹«p16»›
  server_condition = ${if eq{$auth3}{‹«p16»›}}
"type": "random_password", "instances": [{"attributes": {"length": 16, "result": "‹«p18»›"
api:⏎  encryption:⏎    key: "‹«a43»=›"
password: {{ .Values.db.password | default "‹«p16»›" }}
db_pass: "{{ vault_db_pass | default('‹«p16»›') }}"
  ikev2 remote-authentication pre-shared-key ‹«p16»›
d-i passwd/root-password password ‹«p16»›
rootpw --plaintext ‹«p16»›
<AdminPassword><Value>‹«p16»›</Value></AdminPassword>
buildConfigField "String", "API_SECRET", "\"‹«a32»›\""
proxy-user = "kim:‹«p16»›"
<param-name>adminPassword</param-name><param-value>‹«p16»›</param-value>
<auth-user-pass>⏎kim⏎‹«p16»›⏎</auth-user-pass>
xauthpassword ‹«p16»›
        option key '‹«p16»›'
rwcommunity ‹«p16»›
createUser kim SHA-256 "‹«p16»›"
WebUI\Password_PBKDF2="@ByteArray(‹«a22»==:«a86»==›)"
"Jwt": { "Issuer": "x", "Key": "‹«a40»›" }
wachtwoord: ‹«p16»›
stats auth kim:‹«p16»›
kim:{PLAIN}‹«p16»›::::::
cache_peer proxy parent 3128 0 no-query login=kim:‹«p16»›
`
