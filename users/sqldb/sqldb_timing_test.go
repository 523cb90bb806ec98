package sqldb

import (
	"context"
	"fmt"
	"testing"

	"pinion/users"
)

func BenchmarkUsers(b *testing.B) {
	db := openTest(b, Options{DSN: fileDSN(b)})
	ctx := context.Background()
	if _, err := db.Fill(ctx, 10_000, nil); err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 20, 256, 1000} {
		ids := make([]int64, n)
		for i := range ids {
			ids[i] = int64(1 + i*9973%10_000)
		}
		b.Run(fmt.Sprintf("rows/ids=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got, err := db.Users(ctx, ids)
				if err != nil || len(got) != n {
					b.Fatal(len(got), err)
				}
			}
		})
		b.Run(fmt.Sprintf("attributes/ids=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := db.Attributes(ctx, ids); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, cities := range []int{0, 1, 2, 50} {
		q := users.ActiveQuery{Limit: 50}
		for c := range cities {
			q.Cities = append(q.Cities, int64(c+1))
		}
		b.Run(fmt.Sprintf("active/cities=%d", cities), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ids, err := db.ActiveIDs(ctx, q); err != nil || len(ids) != 50 {
					b.Fatal(len(ids), err)
				}
			}
		})
	}
}

// BenchmarkUsersOnServer is the rows of a full batch from MariaDB.
func BenchmarkUsersOnServer(b *testing.B) {
	db := openTest(b, Options{DSN: servers.MariaDB(b).Database()})
	ctx := context.Background()
	if _, err := db.Fill(ctx, 10_000, nil); err != nil {
		b.Fatal(err)
	}
	ids := make([]int64, 256)
	for i := range ids {
		ids[i] = int64(1 + i*9973%10_000)
	}
	b.ReportAllocs()
	for b.Loop() {
		got, err := db.Users(ctx, ids)
		if err != nil || len(got) != len(ids) {
			b.Fatal(len(got), err)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	user := users.NewUser{
		Name: "Zoë", Email: "zoe@example.com", Status: users.StatusActive, CityID: 3, Address: "1 Main Street",
		Attributes: []users.Attribute{{Key: "lang", Value: "en"}, {Key: "theme", Value: "dark"}},
	}
	for _, dsn := range []string{scheme + memoryName, fileDSN(b)} {
		name := "file"
		if dsn == scheme+memoryName {
			name = "memory"
		}
		b.Run(name, func(b *testing.B) {
			db := openTest(b, Options{DSN: dsn})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := db.Create(context.Background(), user); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("users=%d", n), func(b *testing.B) {
			for b.Loop() {
				db := openTest(b, Options{DSN: fileDSN(b)})
				if filled, err := db.Fill(context.Background(), n, nil); err != nil || !filled {
					b.Fatal(filled, err)
				}
			}
		})
	}
}
