package aws_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

func TestFaultsAreWordedByService(t *testing.T) {
	c := start(t, fast())
	api := dial(c)
	for kind, want := range map[aws.Kind]map[string]string{
		aws.Throttle:           {"ec2": "RequestLimitExceeded", "autoscaling": "Throttling", "ssm": "ThrottlingException", "sts": "Throttling"},
		aws.ServerError500:     {"ec2": "InternalError", "autoscaling": "InternalFailure", "ssm": "InternalServerError", "sts": "InternalFailure"},
		aws.Unavailable503:     {"ec2": "Unavailable", "autoscaling": "ServiceUnavailable", "ssm": "ServiceUnavailable", "sts": "ServiceUnavailable"},
		aws.Forbidden:          {"ec2": "UnauthorizedOperation", "autoscaling": "AccessDenied", "ssm": "AccessDeniedException", "sts": "AccessDenied"},
		aws.ExpiredCredentials: {"ec2": "RequestExpired", "autoscaling": "ExpiredToken", "ssm": "ExpiredTokenException", "sts": "ExpiredToken"},
	} {
		stop := c.Inject(aws.Fault{Kind: kind, Times: 4})
		for service, err := range calls(api) {
			t.Run(string(kind)+"/"+service, func(t *testing.T) { wantCode(t, err, want[service]) })
		}
		if n := stop(); n != 4 {
			t.Errorf("%s struck %d times", kind, n)
		}
	}
	for service, err := range calls(api) {
		if err != nil {
			t.Errorf("%s after the faults: %v", service, err)
		}
	}
}

func TestALostAnswerIsACallThatWasDone(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Max: 5})
	api := dial(c)
	c.Inject(aws.Fault{Service: "autoscaling", Action: "Set*", Kind: aws.AnswerLost, Times: 1})
	if err := set(api, 3, false); err == nil {
		t.Fatal("the answer was not lost")
	}
	if g := must(c.Group("workers")); g.Desired != 3 {
		t.Fatalf("desired is %d", g.Desired)
	}
	got := c.Calls(aws.Writes)
	if len(got) != 1 || !got[0].Done || got[0].Status != 0 || got[0].Params["DesiredCapacity"] != "3" {
		t.Fatalf("got %v", got)
	}
	c.Inject(aws.Fault{Action: "SetDesiredCapacity", Kind: aws.ConnectionReset, Times: 1})
	if err := set(api, 4, false); err == nil || must(c.Group("workers")).Desired != 3 {
		t.Fatalf("a reset connection must leave the world alone: %v\n%s", err, c)
	}
}

func TestAClientTokenMakesARetrySafe(t *testing.T) {
	c := start(t, fast())
	c.Inject(aws.Fault{Kind: aws.AnswerLost, Times: 1})
	api := connect(c, c.RootCredentials(), c.Region(), 3)
	out, err := api.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: sdk.String("once"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "t3.large"}})
	if err != nil || *out.LaunchTemplate.LaunchTemplateName != "once" {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestListsComeInPagesAndBreakInPages(t *testing.T) {
	opts := fast()
	opts.MaxPage = 2
	c := start(t, opts)
	workers(t, c, aws.Group{Max: 5, Desired: 5})
	await.True(t, "five in service", inService(c, 5))
	api := dial(c)
	list := func() (n int, err error) {
		pages := ec2.NewDescribeInstancesPaginator(api.ec2, &ec2.DescribeInstancesInput{
			Filters: []ec2types.Filter{{Name: sdk.String("tag:aws:autoscaling:groupName"), Values: []string{"workers"}}, {Name: sdk.String("instance-state-name"), Values: []string{"running"}}}})
		for pages.HasMorePages() {
			p, err := pages.NextPage(ctx)
			if err != nil {
				return n, err
			}
			n += len(p.Reservations)
		}
		return n, nil
	}
	for _, test := range []struct {
		kind aws.Kind
		n    int
		fine bool
	}{{"", 5, true}, {aws.PartialPage, 2, false}, {aws.EmptyList, 0, true}, {aws.ShortList, 2, true}, {aws.TruncatedBody, 0, false}} {
		if test.kind != "" {
			stop := c.Inject(aws.Fault{Service: "ec2", Kind: test.kind})
			defer stop()
		}
		n, err := list()
		if n != test.n || (err == nil) != test.fine {
			t.Errorf("%s: %d instances, %v", test.kind, n, err)
		}
		c.ClearFaults()
	}
	_, err := api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{NextToken: sdk.String("nonsense")})
	wantCode(t, err, "InvalidNextToken")
	_, err = api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"i-0aaaaaaaaaaaaaaaa"}})
	wantMessage(t, err, "InvalidInstanceID.NotFound: The instance ID 'i-0aaaaaaaaaaaaaaaa' does not exist")
}

func TestReadsLagBehindWrites(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Max: 5})
	api := dial(c)
	seen := func() (desired int32, listed int) {
		g, err := api.asg.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
		if err != nil {
			t.Fatal(err)
		}
		i, err := api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
		if err != nil {
			t.Fatal(err)
		}
		return *g.AutoScalingGroups[0].DesiredCapacity, len(i.Reservations)
	}
	c.StaleReads(time.Hour)
	if err := set(api, 2, false); err != nil {
		t.Fatal(err)
	}
	await.True(t, "two in service", inService(c, 2))
	if desired, listed := seen(); desired != 0 || listed != 0 {
		t.Errorf("an hour behind: desired %d, %d listed", desired, listed)
	}
	c.StaleService("autoscaling", 0)
	if desired, listed := seen(); desired != 2 || listed != 0 {
		t.Errorf("only EC2 behind: desired %d, %d listed", desired, listed)
	}
	c.StaleReads(20 * time.Millisecond)
	await.True(t, "the present to be seen", func() bool { d, n := seen(); return d == 2 && n == 2 })
	c.StaleReads(0)
	if desired, listed := seen(); desired != 2 || listed != 2 {
		t.Errorf("not behind: desired %d, %d listed", desired, listed)
	}
}

func TestTheSeedDecidesWhatIsRandom(t *testing.T) {
	story := func(seed uint64) string {
		opts := fast()
		opts.Seed = seed
		c := start(t, opts)
		c.Inject(aws.Fault{Kind: aws.Throttle, Probability: 0.5})
		var b strings.Builder
		for range 20 {
			_, err := dial(c).asg.DescribeAutoScalingGroups(ctx, nil)
			fmt.Fprint(&b, err == nil)
		}
		return b.String()
	}
	if a, b := story(7), story(7); a != b {
		t.Errorf("the same seed told two stories:\n%s\n%s", a, b)
	}
	if story(7) == story(8) {
		t.Error("two seeds told one story")
	}
}

func TestParametersKeepTheirSecretsOutOfTheLog(t *testing.T) {
	c := start(t, fast())
	api := dial(c)
	put := func(overwrite bool) error {
		_, err := api.ssm.PutParameter(ctx, &ssm.PutParameterInput{Name: sdk.String("/join"), Value: sdk.String("abcdef.0123456789abcdef"),
			Type: ssmtypes.ParameterTypeSecureString, Overwrite: &overwrite})
		return err
	}
	if err := put(false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, put(false), "ParameterAlreadyExists")
	if err := put(true); err != nil {
		t.Fatal(err)
	}
	for decrypt, want := range map[bool]bool{true: true, false: false} {
		out, err := api.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: sdk.String("/join"), WithDecryption: &decrypt})
		if err != nil || (*out.Parameter.Value == "abcdef.0123456789abcdef") != want || out.Parameter.Version != 2 {
			t.Errorf("decrypt %v: got %v, %v", decrypt, out, err)
		}
	}
	if s := fmt.Sprint(c.Calls(nil)); strings.Contains(s, "abcdef.") {
		t.Errorf("the log has the secret: %s", s)
	}
	_, err := api.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: sdk.String("/none")})
	wantCode(t, err, "ParameterNotFound")
}
