package asg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// loadAWS runs the SDK's default chain and finds the region.
func loadAWS(ctx context.Context, c Config) (aws.Config, error) {
	// A provider logs nothing itself: what matters is in its errors.
	opts := []func(*config.LoadOptions) error{config.WithRetryer(retryer), config.WithLogger(logging.Nop{})}
	if c.Region != "" {
		opts = append(opts, config.WithRegion(c.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return cfg, &provider.Error{Op: "load AWS configuration", Kind: provider.Invalid, Err: err,
			Remedy: "mend the AWS_* variables or the shared AWS files that it names"}
	}
	if c.Transport != nil {
		cfg.HTTPClient = &http.Client{Transport: c.Transport}
	}
	if cfg.Region == "" {
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		answer, err := imds.NewFromConfig(cfg).GetRegion(limited, &imds.GetRegionInput{})
		if err != nil {
			return cfg, &provider.Error{Op: "load AWS configuration", Kind: provider.Invalid,
				Err:    fmt.Errorf("no region is configured and the instance metadata service gave none: %w", shorten(err)),
				Remedy: "set AUTOSCALER_AWS_REGION, for example to eu-west-1"}
		}
		cfg.Region = answer.Region
	}
	return cfg, nil
}

// retryer repeats a broken connection or a 5xx once and soon. Throttling is not
// repeated: it is a fact that the next round should see at once.
func retryer() aws.Retryer {
	throttles := retry.IsErrorThrottles(retry.DefaultThrottles)
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 2
		o.MaxBackoff = 200 * time.Millisecond
		o.Retryables = append([]retry.IsErrorRetryable{
			retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				if throttles.IsErrorThrottle(err) == aws.TrueTernary {
					return aws.FalseTernary
				}
				return aws.UnknownTernary
			}),
		}, o.Retryables...)
	})
}

// shorten drops the SDK's list of attempts from err where the cause is enough.
func shorten(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}
