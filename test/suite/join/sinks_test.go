package join

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// newest is the newest user data of a launch template, and how many versions there are.
func (s *scene) newest(template string) (userData string, versions int) {
	s.t.Helper()
	cfg, err := config.LoadDefaultConfig(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	api := ec2.NewFromConfig(cfg)
	out, err := api.DescribeLaunchTemplateVersions(s.t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: sdk.String(template)})
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(sdk.ToString(out.LaunchTemplateVersions[0].LaunchTemplateData.UserData))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text), len(out.LaunchTemplateVersions)
}

// everywhere waits until each place has a token that is not one of old, and tells it.
func (s *scene) everywhere(template string, old string) bootstrap.Join {
	s.t.Helper()
	var j bootstrap.Join
	await.Nil(s.t, "each place has the published token", func(ctx context.Context) error {
		j = s.published()
		if j.Token == "" || j.Token == old {
			return errNotYet("the file")
		}
		value, _, _ := s.w.Cloud.Parameter("/clusters/demo/join")
		if p, _ := bootstrap.ReadJoin([]byte(value)); p.Token != j.Token {
			return errNotYet("the parameter")
		}
		x, err := s.client.CoreV1().Secrets("kube-system").Get(ctx, secret.Name, metav1.GetOptions{})
		if err != nil || string(x.Data["JOIN_TOKEN"]) != j.Token {
			return errNotYet("the Secret")
		}
		text, _ := s.newest(template)
		if held, err := userdata.Read([]byte(text)); err != nil || held.Join.Token != j.Token || held.Join.Endpoint != j.Endpoint {
			return errNotYet("the launch template")
		}
		return nil
	})
	return j
}

type errNotYet string

func (e errNotYet) Error() string { return string(e) + " does not have it" }

// TestPublishedEverywhere: the whole agent publishes as a file, an SSM parameter, a Secret and
// a launch template version, with the rights that ship. Killed at any moment, it leaves the file
// whole, and the next one brings all places to the same token; a machine of a group that
// launches the newest version joins.
func TestPublishedEverywhere(t *testing.T) {
	s := newScene(t, nil)
	for _, line := range s.w.Cloud.Env() {
		name, value, _ := strings.Cut(line, "=")
		t.Setenv(name, value)
	}
	template := s.group("workers", s.userData(), 3)
	env := []string{"AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES=" + template, "AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATE_KEEP=2", "AUTOSCALER_BOOTSTRAP_SECRET=true",
		"AUTOSCALER_BOOTSTRAP_SSM_PARAMETER=/clusters/demo/join", "AUTOSCALER_BOOTSTRAP_TOKEN_TTL=10s"}
	s.start(append(env, "AUTOSCALER_BOOTSTRAP_TOKEN_MAX_AGE=10s")...) // it is replaced all the time
	first := s.everywhere(template, "")
	s.everywhere(template, first.Token)

	seed := drawn.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	tokens := map[string]bool{}
	for range 16 {
		for until := time.Now().Add(time.Duration(200+rng.IntN(3500)) * time.Millisecond); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			tokens[s.published().Token] = true
		}
		s.agent.Kill()
		s.published()
		s.start(append(env, "AUTOSCALER_BOOTSTRAP_TOKEN_MAX_AGE=10s")...)
	}
	if len(tokens) < 3 {
		t.Errorf("%d tokens were published: nothing was rotated", len(tokens))
	}
	s.agent.Kill()
	old := s.published().Token
	s.start(env...) // this one replaces no token that is good
	await.True(t, "the agent leads", func() bool { return strings.Contains(s.agent.Tail(200), "holding the Lease") })
	if err := s.client.CoreV1().Secrets("kube-system").Delete(t.Context(), "bootstrap-token-"+old[:6], metav1.DeleteOptions{}); err != nil {
		t.Log(err) // it had ended
	}
	s.everywhere(template, old)
	if _, n := s.newest(template); n > 3 {
		t.Errorf("%d versions: one of a person's, and two of the agent's stay", n)
	}
	if left, _ := filepath.Glob(filepath.Join(s.w.Dir, ".worker.env.*")); len(left) > 0 {
		t.Errorf("left beside the file: %v", left)
	}
	if n := len(s.tokens()); n > 4 {
		t.Errorf("%d tokens", n)
	}
	for _, c := range s.w.Cloud.Calls(func(c aws.Call) bool {
		return strings.Contains(c.Action, "LaunchTemplate") && !strings.HasPrefix(c.Action, "Describe")
	}) {
		if c.Action != "CreateLaunchTemplateVersion" && c.Action != "DeleteLaunchTemplateVersions" {
			t.Errorf("the agent called %s", c.Action)
		}
	}
	s.deploy(2)
	await.True(t, "machines of the newest version have joined", func() bool { return s.ready() == 2 })
}
