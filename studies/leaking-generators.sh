#!/bin/sh
# Which generators leak? Fine-tuning and rewriting do; what DP-SGD shows are phantoms. About half an hour on two idle cores.
# Usage: studies/leaking-generators.sh FOLDER      (a new folder; everything in it is private but synthetic.csv)
set -eu
folder=$1
mkdir "$folder"

made() { # name, then options of `coalmine synthesise`
    name=$1
    shift
    coalmine synthesise --out "$folder/$name" --json "$@" > "$folder/$name.json"
    coalmine audit disclosures --train "$folder/$name/train.csv" --holdout "$folder/$name/holdout.csv" \
        --synthetic "$folder/$name/synthetic.csv" --assignment bernoulli --p 0.5 --classes pii,regurgitation \
        --out "$folder/$name-report"
}

made copycat-0 --users 2000 --generator copycat --rate 0
made copycat-5 --users 2000 --generator copycat --rate 0.05
made rewrite --users 2000 --generator rewrite
made sft --users 200 --records-per-user 4 --public-texts 400 --size 1500 --generator sft --epochs 40
made dp-sft --users 200 --records-per-user 4 --public-texts 1500 --size 1500 --generator dp-sft --eps 10 --steps 50

# The baseline: canaries of its own, and four more runs of the generator.
coalmine synthesise --out "$folder/echo" --generator copycat --rate 0.5 --users 500 --canaries 200 --json > "$folder/echo.json"
coalmine audit canary-echo --canaries "$folder/echo/canaries.csv" --synthetic "$folder/echo/synthetic.csv" \
    --reference "$folder/echo/reference-1.csv" --reference "$folder/echo/reference-2.csv" \
    --reference "$folder/echo/reference-3.csv" --reference "$folder/echo/reference-4.csv"
