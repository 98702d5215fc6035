package aws_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// fast is a cloud in which nothing takes long.
func fast() aws.Options {
	return aws.Options{
		LaunchDelay: 2 * time.Millisecond, BootDelay: 10 * time.Millisecond, TerminateDelay: 10 * time.Millisecond,
		HealthCheckDelay: 5 * time.Millisecond, RetryDelay: 20 * time.Millisecond,
	}
}

// start runs a cloud whose every answer is checked against the API models,
// and prints the world and the seed if the test fails.
func start(t *testing.T, opts aws.Options) *aws.Cloud {
	t.Helper()
	opts.OnExchange = checked(t)
	c, err := aws.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the world at the end:\n%s", c)
		}
		c.Close()
	})
	return c
}

// clients are the real SDK clients. attempts 1 switches their retries off.
type clients struct {
	ec2 *ec2.Client
	asg *autoscaling.Client
	ssm *ssm.Client
	sts *sts.Client
}

func connect(c *aws.Cloud, k aws.Credentials, region string, attempts int) clients {
	cfg := sdk.Config{
		Region:       region,
		BaseEndpoint: sdk.String(c.Endpoint()),
		Credentials:  credentials.NewStaticCredentialsProvider(k.AccessKeyID, k.SecretAccessKey, k.SessionToken),
		Retryer: func() sdk.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = attempts
				o.MaxBackoff = 10 * time.Millisecond
			})
		},
	}
	return clients{ec2.NewFromConfig(cfg), autoscaling.NewFromConfig(cfg), ssm.NewFromConfig(cfg), sts.NewFromConfig(cfg)}
}

func dial(c *aws.Cloud) clients { return connect(c, c.RootCredentials(), c.Region(), 1) }

// workers puts a group "workers" with its template.
func workers(t *testing.T, c *aws.Cloud, g aws.Group) {
	t.Helper()
	c.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "t3.large", UserData: "#!/bin/sh\necho <joined> & \"done\"\n",
		InstanceProfile: "worker", SecurityGroups: []string{"sg-0123456789abcdef0"}, Tags: map[string]string{"role": "worker"},
		BlockDevices: []aws.BlockDevice{{DeviceName: "/dev/xvda", SizeGiB: 20, VolumeType: "gp3"}}, HTTPTokens: "required", HopLimit: 2, MetadataTags: true})
	g.Name, g.LaunchTemplate = "workers", "worker"
	if err := c.PutGroup(g); err != nil {
		t.Fatal(err)
	}
}

func inService(c *aws.Cloud, n int) func() bool {
	return func() bool {
		g, _ := c.Group("workers")
		return len(g.Instances) == n && g.Lifecycles()["InService"] == n
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("got %v, want an API error %s", err, code)
	}
	if api.ErrorCode() != code {
		t.Fatalf("got %s: %s, want %s", api.ErrorCode(), api.ErrorMessage(), code)
	}
}

var ctx = context.Background()
