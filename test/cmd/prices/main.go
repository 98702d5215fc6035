// Command prices renews agent/provider/asg/price/ondemand.txt from AWS's own public price list.
// It needs the internet, and invents nothing: a list that has fewer types than the table leaves
// the table as it was.
package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
)

const publicList = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.csv"

func main() {
	table := flag.String("table", "", "the `file` to renew")
	list := flag.String("list", publicList, "the `address` of the price list, in AWS's form CSV")
	flag.Parse()
	if err := run(context.Background(), *table, *list); err != nil {
		fmt.Fprintf(os.Stderr, "prices: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, table, list string) error {
	old, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, list, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", list, answer.Status)
	}
	prices, published, err := read(answer.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	if had := strings.Count(string(old), "="); len(prices) < had {
		return fmt.Errorf("%s has %d types, and the table %d: the table stays as it was", list, len(prices), had)
	}
	return os.WriteFile(table, []byte(write(prices, published)), 0o644)
}

// read reads the on-demand prices of Linux machines with shared tenancy. The list begins with five
// lines of NAME,VALUE, of which one is its date; then comes a header.
func read(r io.Reader) (prices map[string]float64, published string, err error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	column := map[string]int{}
	for len(column) == 0 {
		row, err := c.Read()
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("no header: %w", err)
		case row[0] == "Publication Date" && len(row) > 1:
			published, _, _ = strings.Cut(row[1], "T")
		case row[0] == "SKU":
			for i, name := range row {
				column[name] = i
			}
		}
	}
	wanted := map[string]string{"TermType": "OnDemand", "Unit": "Hrs", "Tenancy": "Shared", "Operating System": "Linux", "CapacityStatus": "Used", "Pre Installed S/W": "NA", "Currency": "USD"}
	for _, name := range append(slices.Collect(maps.Keys(wanted)), "Instance Type", "PricePerUnit") {
		if _, ok := column[name]; !ok {
			return nil, "", fmt.Errorf("no column %q", name)
		}
	}
	prices = map[string]float64{}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return prices, published, nil
		}
		if err != nil {
			return nil, "", err
		}
		taken := len(row) == len(column)
		for name, value := range wanted {
			taken = taken && row[column[name]] == value
		}
		if !taken {
			continue
		}
		typ := strings.Clone(row[column["Instance Type"]])
		if price, err := strconv.ParseFloat(row[column["PricePerUnit"]], 64); err == nil && price > 0 && strings.Contains(typ, ".") {
			prices[typ] = price
		}
	}
}

// write renders the table: a line for each family, its sizes by price.
func write(prices map[string]float64, published string) string {
	families := map[string][]string{}
	for typ := range prices {
		family, size, _ := strings.Cut(typ, ".")
		families[family] = append(families[family], size)
	}
	var b strings.Builder
	fmt.Fprintln(&b, "# What AWS asks for one hour of an instance on demand (Linux, shared tenancy) in us-east-1, in USD.")
	fmt.Fprintf(&b, "# AWS's own public price list of %s.\n", published)
	fmt.Fprintln(&b, "# `make prices` renews this file from the list itself.")
	for _, family := range slices.Sorted(maps.Keys(families)) {
		sizes := families[family]
		slices.SortFunc(sizes, func(x, y string) int {
			return cmp.Or(cmp.Compare(prices[family+"."+x], prices[family+"."+y]), cmp.Compare(x, y))
		})
		b.WriteString(family)
		for _, size := range sizes {
			b.WriteString(" " + size + "=" + strconv.FormatFloat(prices[family+"."+size], 'f', -1, 64))
		}
		b.WriteString("\n")
	}
	return b.String()
}
