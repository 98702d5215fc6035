package aws_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// calls makes one read call per service and returns the errors by service.
func calls(api clients) map[string]error {
	out := map[string]error{}
	_, out["ec2"] = api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	_, out["autoscaling"] = api.asg.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
	_, out["ssm"] = api.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/none"}})
	_, out["sts"] = api.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	return out
}

func TestCredentialsAreVerifiedAsEachServiceWordsIt(t *testing.T) {
	c := start(t, fast())
	root := c.RootCredentials()
	for service, err := range calls(dial(c)) {
		if err != nil {
			t.Fatalf("%s with good credentials: %v", service, err)
		}
	}
	expired := c.IssueCredentials("worker", time.Hour)
	if err := calls(connect(c, expired, c.Region(), 1))["sts"]; err != nil {
		t.Fatalf("temporary credentials: %v", err)
	}
	c.ExpireKey(expired.AccessKeyID)
	badToken := c.IssueCredentials("worker", time.Hour)
	badToken.SessionToken += "x"
	revoked := c.IssueCredentials("worker", time.Hour)
	c.RevokeKey(revoked.AccessKeyID)
	for name, test := range map[string]struct {
		k      aws.Credentials
		region string
		want   map[string]string
	}{
		"wrong secret": {aws.Credentials{AccessKeyID: root.AccessKeyID, SecretAccessKey: "wrong"}, c.Region(), map[string]string{
			"ec2": "AuthFailure", "autoscaling": "SignatureDoesNotMatch", "ssm": "InvalidSignatureException", "sts": "SignatureDoesNotMatch"}},
		"unknown key": {aws.Credentials{AccessKeyID: "AKIAXXXXXXXXXXXXXXXX", SecretAccessKey: "wrong"}, c.Region(), map[string]string{
			"ec2": "AuthFailure", "autoscaling": "InvalidClientTokenId", "ssm": "UnrecognizedClientException", "sts": "InvalidClientTokenId"}},
		"revoked key": {revoked, c.Region(), map[string]string{
			"ec2": "AuthFailure", "autoscaling": "InvalidClientTokenId", "ssm": "UnrecognizedClientException", "sts": "InvalidClientTokenId"}},
		"bad token": {badToken, c.Region(), map[string]string{
			"ec2": "AuthFailure", "autoscaling": "InvalidClientTokenId", "ssm": "UnrecognizedClientException", "sts": "InvalidClientTokenId"}},
		"expired": {expired, c.Region(), map[string]string{
			"ec2": "RequestExpired", "autoscaling": "ExpiredToken", "ssm": "ExpiredTokenException", "sts": "ExpiredToken"}},
		"wrong region": {root, "eu-west-1", map[string]string{
			"ec2": "AuthFailure", "autoscaling": "SignatureDoesNotMatch", "ssm": "InvalidSignatureException", "sts": "SignatureDoesNotMatch"}},
	} {
		t.Run(name, func(t *testing.T) {
			for service, err := range calls(connect(c, test.k, test.region, 1)) {
				wantCode(t, err, test.want[service])
				if name == "wrong region" && service == "sts" && !strings.Contains(err.Error(), "valid region, not 'eu-west-1'") {
					t.Errorf("the message does not name the region: %v", err)
				}
			}
		})
	}
}

// TestTheClockMustBeRight signs by hand: the SDK would correct its clock.
func TestTheClockMustBeRight(t *testing.T) {
	c := start(t, fast())
	k := c.RootCredentials()
	body := "Action=GetCallerIdentity&Version=2011-06-15"
	hash := sha(body)
	send := func(at time.Time) (int, string) {
		req, err := http.NewRequest("POST", c.Endpoint()+"/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		if err := v4.NewSigner().SignHTTP(ctx, sdk.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey}, req, hash, "sts", c.Region(), at); err != nil {
			t.Fatal(err)
		}
		return do(t, req)
	}
	if status, answer := send(time.Now().Add(4 * time.Minute)); status != 200 {
		t.Errorf("four minutes off: %d %s", status, answer)
	}
	if status, answer := send(time.Now().Add(-6 * time.Minute)); status != 403 || !strings.Contains(answer, "Signature expired: ") || !strings.Contains(answer, " - 5 min.)") {
		t.Errorf("six minutes late: %d %s", status, answer)
	}
	if status, answer := send(time.Now().Add(6 * time.Minute)); status != 403 || !strings.Contains(answer, "Signature not yet current: ") {
		t.Errorf("six minutes early: %d %s", status, answer)
	}
	tampered := body
	body = strings.Replace(body, "GetCallerIdentity", "GetSessionToken", 1)
	hash = sha(tampered)
	if status, answer := send(time.Now()); status != 403 || !strings.Contains(answer, "SignatureDoesNotMatch") {
		t.Errorf("another body than was signed: %d %s", status, answer)
	}
	unsigned, _ := http.NewRequest("GET", c.Endpoint()+"/?Action=GetCallerIdentity&Version=2011-06-15", nil)
	if status, answer := do(t, unsigned); status != 403 || !strings.Contains(answer, "MissingAuthenticationToken") {
		t.Errorf("unsigned: %d %s", status, answer)
	}
}

func TestUnknownActionsAndParametersAreRefused(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Max: 1})
	api := dial(c)
	_, err := api.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{})
	wantCode(t, err, "InvalidAction")
	_, err = api.asg.DescribePolicies(ctx, &autoscaling.DescribePoliciesInput{})
	wantCode(t, err, "InvalidAction")
	_, err = api.ssm.DescribeParameters(ctx, &ssm.DescribeParametersInput{})
	wantCode(t, err, "UnknownOperationException")
	_, err = api.asg.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: sdk.String("workers"), MaxSize: sdk.Int32(5), MaxInstanceLifetime: sdk.Int32(86400)})
	wantCode(t, err, "UnsupportedOperation")
	if g, _ := c.Group("workers"); g.Max != 1 {
		t.Errorf("the refused update was half done: max is %d", g.Max)
	}
	_, err = api.sts.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: sdk.String("arn:aws:iam::123456789012:role/leader"), RoleSessionName: sdk.String("s")})
	if err != nil {
		t.Errorf("assume role: %v", err)
	}
}
