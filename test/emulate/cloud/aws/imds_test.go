package aws_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

func TestAnInstanceKnowsItselfByIMDSv2(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Max: 1, Desired: 1, Tags: map[string]string{"k8s.io/cluster": "demo"}})
	await.True(t, "one in service", inService(c, 1))
	i := c.Instances()[0]
	endpoint, err := i.IMDS()
	if err != nil {
		t.Fatal(err)
	}
	v1, _ := http.NewRequest("GET", endpoint+"/latest/meta-data/instance-id", nil)
	if status, _ := do(t, v1); status != 401 {
		t.Errorf("a request without a token: %d", status)
	}
	noTTL, _ := http.NewRequest("PUT", endpoint+"/latest/api/token", nil)
	if status, _ := do(t, noTTL); status != 400 {
		t.Errorf("a token without a TTL: %d", status)
	}
	client := imds.New(imds.Options{Endpoint: endpoint})
	get := func(path string) string {
		t.Helper()
		out, err := client.GetMetadata(ctx, &imds.GetMetadataInput{Path: path})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return ""
		}
		defer out.Content.Close()
		b, _ := io.ReadAll(out.Content)
		return string(b)
	}
	for path, want := range map[string]string{
		"instance-id": i.ID, "placement/availability-zone": i.Zone, "placement/region": c.Region(), "local-ipv4": i.PrivateIP,
		"local-hostname": i.PrivateDNS, "instance-type": "t3.large", "ami-id": i.ImageID, "tags/instance/k8s.io/cluster": "demo",
		"iam/security-credentials/": "worker", "tags/instance/role": "worker",
	} {
		if got := get(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := get("tags/instance"); !strings.Contains(got, "k8s.io/cluster\nrole") {
		t.Errorf("tags: %q", got)
	}
	if got := get(""); !strings.Contains(got, "ami-id\n") || !strings.Contains(got, "\nplacement/\n") {
		t.Errorf("the top: %q", got)
	}
	doc, err := client.GetInstanceIdentityDocument(ctx, &imds.GetInstanceIdentityDocumentInput{})
	if err != nil || doc.InstanceID != i.ID || doc.Region != c.Region() || doc.PrivateIP != i.PrivateIP {
		t.Errorf("got %+v, %v", doc, err)
	}
	data, err := client.GetUserData(ctx, &imds.GetUserDataInput{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(data.Content); string(b) != i.UserData {
		t.Errorf("user data: %q", b)
	}
	if err := terminate(dial(c), i.ID, true); err != nil {
		t.Fatal(err)
	}
	await.True(t, "terminated", inService(c, 0))
	if _, err := http.Get(endpoint); err == nil {
		t.Error("the metadata service outlived its instance")
	}
	if _, err := i.IMDS(); err == nil {
		t.Error("a terminated instance has a metadata service")
	}
}

// TestTheDefaultConfigurationFindsTheCloud goes the way of a real program:
// nothing but the environment, credentials from the instance's role.
func TestTheDefaultConfigurationFindsTheCloud(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Max: 1, Desired: 1})
	await.True(t, "one in service", inService(c, 1))
	i := c.Instances()[0]
	env, err := c.EnvOn(i.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		env []string
		who string
	}{{c.Env(), ":user/tester"}, {env, "assumed-role/worker/" + i.ID}} {
		for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED", "AWS_PROFILE"} {
			t.Setenv(name, "")
		}
		t.Setenv("AWS_CONFIG_FILE", "/dev/null")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
		for _, line := range test.env {
			name, value, _ := strings.Cut(line, "=")
			t.Setenv(name, value)
		}
		cfg, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			t.Fatal(err)
		}
		me, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil || !strings.HasSuffix(*me.Arn, test.who) {
			t.Errorf("got %v, %v, want %s", me, err, test.who)
		}
		if _, err := ec2.NewFromConfig(cfg).DescribeImages(ctx, &ec2.DescribeImagesInput{}); err != nil {
			t.Error(err)
		}
	}
}
