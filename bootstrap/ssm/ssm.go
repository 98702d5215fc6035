// Package ssm publishes join information as an SSM parameter, from which a worker on AWS
// reads it with its instance role.
//
// It refuses to write anything but a SecureString, to write before the right to write is
// proven anew, to read a parameter, and to put the value into an error.
package ssm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go/logging"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
)

const callTimeout = 10 * time.Second

// Sink writes one parameter.
type Sink struct {
	name, key, region string
	permit            bootstrap.Permit
	client            *ssm.Client // nil: not made yet
}

// New returns a sink for a parameter. key is the KMS key, "" for the account's own.
func New(name, key, region string, permit bootstrap.Permit) *Sink {
	return &Sink{name: name, key: key, region: region, permit: permit}
}

// Name implements bootstrap.Sink.
func (s *Sink) Name() string { return "SSM parameter " + s.name }

// Publish implements bootstrap.Sink.
func (s *Sink) Publish(ctx context.Context, join bootstrap.Join) error {
	ctx, done, err := s.permit(ctx)
	if err != nil {
		return err
	}
	defer done()
	data, err := bootstrap.Render(join)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if s.client == nil {
		opts := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
		if s.region != "" {
			opts = append(opts, config.WithRegion(s.region))
		}
		cfg, err := config.LoadDefaultConfig(ctx, opts...)
		if err != nil {
			return fmt.Errorf("load AWS configuration: %w", err)
		}
		s.client = ssm.NewFromConfig(cfg)
	}
	in := &ssm.PutParameterInput{Name: aws.String(s.name), Value: aws.String(string(data)), Type: types.ParameterTypeSecureString, Overwrite: aws.Bool(true)}
	if s.key != "" {
		in.KeyId = aws.String(s.key)
	}
	if _, err := s.client.PutParameter(ctx, in); err != nil {
		var answer interface{ ErrorCode() string }
		if errors.As(err, &answer) && strings.HasPrefix(answer.ErrorCode(), "AccessDenied") {
			return fmt.Errorf("%w (autoscaler-agent iam-policy leader --parameter %s prints what the agent's role lacks)", err, s.name)
		}
		return err
	}
	return nil
}
