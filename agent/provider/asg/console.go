package asg

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// ReadConsole returns the last 64 KiB that an instance ("i-...") has written to its serial
// console. EC2 keeps the latest on Nitro machines; of others it has what it fetched some
// minutes ago. instance is no part of a Provider's contract: nothing is decided by it.
func ReadConsole(ctx context.Context, c Config, instance string) (string, error) {
	cfg, err := loadAWS(ctx, c)
	if err != nil {
		return "", err
	}
	client := ec2.NewFromConfig(cfg)
	answer, err := client.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: aws.String(instance), Latest: aws.Bool(true)})
	if api, ok := errors.AsType[smithy.APIError](err); ok && (api.ErrorCode() == "UnsupportedOperation" || api.ErrorCode() == "InvalidParameterCombination") {
		answer, err = client.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: aws.String(instance)})
	}
	if err != nil {
		return "", awsapi.Classify("read the console of "+instance, "", awsapi.ActionConsole, err)
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(answer.Output))
	if err != nil {
		return "", fmt.Errorf("read the console of %s: %w", instance, err)
	}
	return string(text), nil
}

// ReadUserData returns the user data of a group's launch template (template.UserData). Like
// ReadConsole it is no part of a Provider's contract.
func ReadUserData(ctx context.Context, c Config, group cluster.GroupID, instance string) (text []byte, from string, err error) {
	cfg, err := loadAWS(ctx, c)
	if err != nil {
		return nil, "", err
	}
	return template.UserData(ctx, &awsapi.Client{Scaling: autoscaling.NewFromConfig(cfg), Compute: ec2.NewFromConfig(cfg), Timeout: 10 * time.Second}, group, instance)
}
