package attest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
)

// TestHostileIdentities: whatever STS says of a caller, one that is not an instance's own
// session of a worker's role gets no token.
func TestHostileIdentities(t *testing.T) {
	const answer = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>%s</Arn><UserId>%s</UserId><Account>%s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`
	const account, role = "123456789012", "arn:aws:sts::123456789012:assumed-role/"
	r := newRig(t, 2, nil)
	id := r.victim(0)
	of := func(arn, user, account string) string { return fmt.Sprintf(answer, arn, user, account) }
	cases := map[string]struct{ said, rule string }{
		"itself":                     {of(role+"worker/"+id, "AROAXAMPLE:"+id, account), ""},
		"a role, not a session":      {of("arn:aws:iam::123456789012:role/worker/"+id, "AROAXAMPLE:"+id, account), "A7"},
		"a user of the role's name":  {of("arn:aws:iam::123456789012:user/worker/"+id, "AIDAXAMPLE", account), "A7"},
		"a federated user":           {of("arn:aws:sts::123456789012:federated-user/"+id, "123456789012:"+id, account), "A7"},
		"a role below a path":        {of(role+"ops/worker/"+id, "AROAXAMPLE:"+id, account), "A7"},
		"a session with a path":      {of(role+"worker/"+id+"/x", "AROAXAMPLE:"+id+"/x", account), "A8"},
		"a session of two instances": {of(role+"worker/"+id+","+r.victim(1), "AROAXAMPLE:"+id+","+r.victim(1), account), "A8"},
		"another session's user ID":  {of(role+"worker/"+id, "AROAXAMPLE:"+r.victim(1), account), "A8"},
		"a user's ID":                {of(role+"worker/"+id, "AIDAXAMPLE:"+id, account), "A8"},
		"no user ID":                 {of(role+"worker/"+id, "", account), "A8"},
		"another partition":          {of("arn:aws-cn:sts::123456789012:assumed-role/worker/"+id, "AROAXAMPLE:"+id, account), "A7"},
		"another account's ARN":      {of("arn:aws:sts::999999999999:assumed-role/worker/"+id, "AROAXAMPLE:"+id, account), "A7"},
		"another account":            {of(role+"worker/"+id, "AROAXAMPLE:"+id, "999999999999"), "A6"},
		"an account with a blank":    {of(role+"worker/"+id, "AROAXAMPLE:"+id, account+" "), "A6"},
		"no account":                 {of(role+"worker/"+id, "AROAXAMPLE:"+id, ""), "A6"},
		"no ARN":                     {of("", "AROAXAMPLE:"+id, account), "A5"},
		"a role in capitals":         {of(role+"WORKER/"+id, "AROAXAMPLE:"+id, account), "A7"},
		"an entity of XML": {`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>` +
			of(role+"worker/&e;", "AROAXAMPLE:&e;", account), "A5"},
		"two ARNs, the other's last": {strings.Replace(of(role+"worker/"+id, "AROAXAMPLE:"+id, account), "</Arn>", "</Arn><Arn>"+role+"leader/"+id+"</Arn>", 1), "A7"},
		"an error with an identity":  {"<ErrorResponse><Error><Code>AccessDenied</Code></Error>" + of(role+"worker/"+id, "AROAXAMPLE:"+id, account) + "</ErrorResponse>", "A5"},
		"an identity in a comment":   {"<GetCallerIdentityResponse><!--" + of(role+"worker/"+id, "AROAXAMPLE:"+id, account) + "--></GetCallerIdentityResponse>", "A5"},
		"JSON":                       {`{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Arn":"` + role + "worker/" + id + `"}}}`, "A5"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r.reset(t)
			r.pretend(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.said) }))
			defer r.pretend(nil)
			status, answer := r.join(1, id)
			if got, _, _ := strings.Cut(answer, " "); c.rule != "" && (status == 200 || got != c.rule) || c.rule == "" && status != 200 {
				t.Errorf("%s, want %q", describe(status, answer), c.rule)
			}
			if n := len(r.tokens()); (n > 0) != (c.rule == "") {
				t.Errorf("%d tokens", n)
			}
		})
	}
}

// TestHostileForms: a request that is good but for its form is not served.
func TestHostileForms(t *testing.T) {
	r := newRig(t, 2, nil)
	cases := map[string]struct {
		send func(c *http.Client, good []byte) (*http.Response, error)
		rule string // of the answer; empty: some refusal
	}{
		"compressed": {func(c *http.Client, good []byte) (*http.Response, error) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write(good); err != nil {
				return nil, err
			}
			if err := z.Close(); err != nil {
				return nil, err
			}
			q, err := http.NewRequest(http.MethodPost, "https://"+r.address+"/v1/join", &b)
			if err != nil {
				return nil, err
			}
			q.Header.Set("Content-Encoding", "gzip")
			return c.Do(q)
		}, "A1"},
		"without end": {func(c *http.Client, good []byte) (*http.Response, error) {
			return c.Post("https://"+r.address+"/v1/join", "application/json", io.MultiReader(bytes.NewReader(good), forever{}))
		}, "A1"},
		"by another method": {func(c *http.Client, good []byte) (*http.Response, error) {
			q, err := http.NewRequest(http.MethodPut, "https://"+r.address+"/v1/join", bytes.NewReader(good))
			if err != nil {
				return nil, err
			}
			return c.Do(q)
		}, ""},
		"at another path": {func(c *http.Client, good []byte) (*http.Response, error) {
			return c.Post("https://"+r.address+"/v1/join/", "application/json", bytes.NewReader(good))
		}, ""},
		"with two keys": {func(c *http.Client, good []byte) (*http.Response, error) {
			return c.Post("https://"+r.address+"/v1/join", "application/json", bytes.NewReader(append(bytes.TrimSuffix(good, []byte("}")), `,"key":"`+strings.Repeat("ab", 32)+`"}`...)))
		}, "A5"},
		"with a key in capitals": {func(c *http.Client, good []byte) (*http.Response, error) {
			return c.Post("https://"+r.address+"/v1/join", "application/json", bytes.NewReader(append(bytes.TrimSuffix(good, []byte("}")), `,"KEY":"`+strings.Repeat("ab", 32)+`"}`...)))
		}, "A5"},
		"with a line's end in the key": {func(c *http.Client, good []byte) (*http.Response, error) {
			return c.Post("https://"+r.address+"/v1/join", "application/json", bytes.NewReader(bytes.Replace(good, []byte(`"key":"`), []byte(`"key":"\n`), 1)))
		}, "A1"},
		"with a number for a key": {func(c *http.Client, good []byte) (*http.Response, error) {
			var m map[string]any
			if err := json.Unmarshal(good, &m); err != nil {
				return nil, err
			}
			m["key"] = 7
			raw, err := json.Marshal(m)
			if err != nil {
				return nil, err
			}
			return c.Post("https://"+r.address+"/v1/join", "application/json", bytes.NewReader(raw))
		}, "A1"},
		"with a header of a megabyte": {func(c *http.Client, good []byte) (*http.Response, error) {
			q, err := http.NewRequest(http.MethodPost, "https://"+r.address+"/v1/join", bytes.NewReader(good))
			if err != nil {
				return nil, err
			}
			q.Header.Set("X-Big", strings.Repeat("a", 1<<20))
			return c.Do(q)
		}, ""},
	}
	n := 10
	for name, c := range cases {
		n++
		t.Run(name, func(t *testing.T) {
			r.reset(t)
			client := r.machine(n)
			good, err := json.Marshal(r.signing(r.credentials(r.victim(0)), r.nonce(client)).sign(t))
			if err != nil {
				t.Fatal(err)
			}
			if res, err := c.send(client, good); err == nil {
				text, _ := io.ReadAll(res.Body)
				_ = res.Body.Close() // it was read
				got, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
				if res.StatusCode < 300 || c.rule != "" && got != c.rule {
					t.Errorf("%d %s, want %q", res.StatusCode, text, c.rule)
				}
			} else if c.rule != "" {
				t.Errorf("%v, want %s", err, c.rule)
			}
			if n := len(r.tokens()); n != 0 {
				t.Errorf("%d tokens", n)
			}
		})
	}
}

// forever is blanks without end.
type forever struct{}

func (forever) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestChallengeOfAnotherListener: a challenge of the agent before its restart, or of another
// leader, is not taken.
func TestChallengeOfAnotherListener(t *testing.T) {
	r := newRig(t, 1, nil)
	old := r.nonce(r.machine(1))
	r.again(t)
	c := r.machine(2)
	for _, nonce := range []string{old, strings.ToUpper(r.nonce(c)), strings.Repeat("0", 80)} {
		status, answer := r.post(c, r.signing(r.credentials(r.victim(0)), nonce).sign(t))
		if got, _, _ := strings.Cut(answer, " "); status == 200 || got != "A1" && got != "A2" {
			t.Errorf("%s: %s", nonce, describe(status, answer))
		}
	}
	if n := len(r.tokens()); n != 0 {
		t.Errorf("%d tokens", n)
	}
}

// TestManyKeysAtOnce: of forty keys that ask at once for one instance one is served, however
// often it asks, and every token is for that key.
func TestManyKeysAtOnce(t *testing.T) {
	r := newRig(t, 1, nil)
	id := r.victim(0)
	keys := r.credentials(id)
	var mu sync.Mutex
	served := map[string]int{}
	var group sync.WaitGroup
	for n := range 40 {
		c := r.machine(n + 1)
		s := r.signing(keys, r.nonce(c))
		s.key = fmt.Sprintf("%064x", n+1)
		request := s.sign(t)
		group.Go(func() {
			status, answer := r.post(c, request)
			mu.Lock()
			defer mu.Unlock()
			if status == 200 {
				served[request.Key]++
			} else if got, _, _ := strings.Cut(answer, " "); got != "A13" {
				t.Errorf("%s", describe(status, answer))
			}
		})
	}
	group.Wait()
	if len(served) != 1 {
		t.Errorf("%d keys were served", len(served))
	}
	for _, s := range r.tokens() {
		if key := s.Annotations[bootstrap.KeyAnnotation]; key != "" && served[key] == 0 {
			t.Errorf("a token is bound to %s", key)
		}
	}
}

// TestANewLeaderKnowsTheFirstKey: a leader that has attested nobody refuses a second key of an
// instance which has attested at the old leader, and gives the first key its token again.
func TestANewLeaderKnowsTheFirstKey(t *testing.T) {
	r := newRig(t, 1, nil)
	id := r.victim(0)
	status, first := r.join(0, id)
	if status != 200 {
		t.Fatal(describe(status, first))
	}
	r.newPool()
	r.again(t)
	c := r.machine(1)
	s := r.signing(r.credentials(id), r.nonce(c))
	s.key = strings.Repeat("cd", 32)
	if status, answer := r.post(c, s.sign(t)); status != 403 || !strings.HasPrefix(answer, "A13 ") {
		t.Errorf("another key: %s", describe(status, answer))
	}
	if status, again := r.join(0, id); status != 200 || again != first {
		t.Errorf("the first key: %s, want %s", describe(status, again), first)
	}
}
