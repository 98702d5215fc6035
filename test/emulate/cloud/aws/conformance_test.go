package aws_test

import (
	"strings"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws/awsmodel"
)

// models loads AWS's API models once.
var models = sync.OnceValues(func() (awsmodel.Models, error) {
	dir, err := awsmodel.Locate("")
	if err != nil {
		return nil, err
	}
	return awsmodel.Load(dir)
})

func answerOf(e aws.Exchange) awsmodel.Answer {
	return awsmodel.Answer{Service: e.Service, Action: e.Action, Status: e.Status, ContentType: e.ContentType, Body: e.Body}
}

// checked makes every answer that a test's cloud gives a test of its form.
func checked(t *testing.T) func(aws.Exchange) {
	m, err := models()
	if err != nil {
		t.Fatal(err)
	}
	return func(e aws.Exchange) {
		if err := m.Check(answerOf(e)); err != nil {
			t.Errorf("%v\n%s", err, e.Body)
		}
	}
}

// TestTheModelCheckBites mutates good answers and wants each to be found.
func TestTheModelCheckBites(t *testing.T) {
	m, err := models()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]aws.Exchange{}
	opts := fast()
	c := start(t, opts)
	c.Close()
	opts.OnExchange = func(e aws.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		seen[e.Action] = e
	}
	c, err = aws.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	workers(t, c, aws.Group{Max: 3, Desired: 1})
	await.True(t, "one in service", inService(c, 1))
	api := dial(c)
	api.ec2.DescribeInstances(ctx, nil)
	api.asg.DescribeAutoScalingGroups(ctx, nil)
	api.asg.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: sdk.String("workers"), DesiredCapacity: sdk.Int32(9)})
	api.ssm.PutParameter(ctx, &ssm.PutParameterInput{Name: sdk.String("/a"), Value: sdk.String("b"), Type: ssmtypes.ParameterTypeString})
	api.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: sdk.String("/a")})
	api.ec2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{InstanceIds: []string{"i-0123"}})
	mu.Lock()
	defer mu.Unlock()
	for _, mutant := range []struct{ action, from, to string }{
		{"DescribeInstances", "<privateIpAddress>", "<PrivateIp>x</PrivateIp><privateIpAddress>"},
		{"DescribeInstances", "<code>16</code>", "<code>sixteen</code>"},
		{"DescribeInstances", "<name>running</name>", "<name>walking</name>"},
		{"DescribeInstances", "<amiLaunchIndex>0</amiLaunchIndex>", "<amiLaunchIndex>0</amiLaunchIndex><amiLaunchIndex>0</amiLaunchIndex>"},
		{"DescribeInstances", "<tagSet><item>", "<tagSet><member></member><item>"},
		{"DescribeInstances", "<productCodes/>", "<productCodes>none</productCodes>"},
		{"DescribeInstances", "<enaSupport>true</enaSupport>", "<enaSupport>True</enaSupport>"},
		{"DescribeInstances", "http://ec2.amazonaws.com/doc/2016-11-15", "http://ec2.amazonaws.com/doc/2015-01-01"},
		{"DescribeInstances", "DescribeInstancesResponse", "DescribeInstanceResponse"},
		{"DescribeAutoScalingGroups", "<MinSize>0</MinSize>", ""},
		{"DescribeAutoScalingGroups", "<LifecycleState>InService</LifecycleState>", "<LifecycleState>Inservice</LifecycleState>"},
		{"DescribeAutoScalingGroups", "DescribeAutoScalingGroupsResult", "Result"},
		{"DescribeAutoScalingGroups", "<CreatedTime>", "<CreatedTime>on "},
		{"SetDesiredCapacity", "<Code>ValidationError</Code>", "<Code>Validation</Code>"},
		{"SetDesiredCapacity", "<Type>Sender</Type>", "<Type>Receiver</Type>"},
		{"SetDesiredCapacity", "<RequestId>", "<Hint/><RequestId>"},
		{"DescribeInstanceStatus", "<Errors>", "<Errors><Error/>"},
		{"GetParameter", `"Version":1`, `"Version":"1"`},
		{"GetParameter", `"Type":"String"`, `"Type":"Text"`},
		{"GetParameter", `"Name":`, `"Nam":`},
		{"PutParameter", `"Version":1`, `"Version":1.5`},
	} {
		good := seen[mutant.action]
		if err := m.Check(answerOf(good)); err != nil {
			t.Errorf("the answer of %s is not good to begin with: %v", mutant.action, err)
		}
		bad := strings.ReplaceAll(string(good.Body), mutant.from, mutant.to)
		if bad == string(good.Body) {
			t.Errorf("%s has no %s to mutate: %s", mutant.action, mutant.from, bad)
			continue
		}
		good.Body = []byte(bad)
		if m.Check(answerOf(good)) == nil {
			t.Errorf("nobody noticed %s instead of %s in %s", mutant.to, mutant.from, mutant.action)
		}
	}
}
