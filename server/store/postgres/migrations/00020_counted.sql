-- beside: yes
-- +goose Up

-- Who adds many lines at once counts their bytes with what else changes of the stream, and says so for the transaction.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION stored_lines() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_setting('ccship.counted', true) IS DISTINCT FROM 'yes' THEN
    UPDATE streams SET stored = stored + NEW.bytes - OLD.bytes WHERE owner = NEW.owner AND id = NEW.stream;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION stored_lines() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE streams SET stored = stored + NEW.bytes - OLD.bytes WHERE owner = NEW.owner AND id = NEW.stream;
  RETURN NULL;
END $$;
-- +goose StatementEnd
