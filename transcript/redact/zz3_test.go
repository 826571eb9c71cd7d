package redact
import ("testing";"strings";"time";"fmt";"os";"runtime/pprof")
func TestSlow(t *testing.T) {
	m := masker(t)
	m.Text([]byte(strings.Repeat("password: |\n", 1000)))
	f, _ := os.Create("/tmp/mask2/slow.prof"); pprof.StartCPUProfile(f)
	for _, s := range []string{"password: |\n","password: |\n  ", "password: ", "AUTH ", "user x >"} {
	t0 := time.Now(); m.Text([]byte(strings.Repeat(s, 1<<18/len(s)))); fmt.Printf("%q %v for 256k\n", s, time.Since(t0)) }
	pprof.StopCPUProfile()
}
