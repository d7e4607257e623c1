//! A store that was cut short, and signs that a store was there before.

use super::*;

#[test]
fn no_cut_of_a_store_begins_empty() {
    let (world, path) = store_with_backup();
    drop(world.store);
    let whole = fs_err::read(&path).unwrap();
    for length in 0..=512 {
        let cut = &whole[..length];
        fs_err::write(&path, cut).unwrap();
        for opened in [Store::open(&path), Store::open_existing(&path)] {
            assert!(matches!(opened, Err(StoreError::Corrupt { .. })), "{length}: {opened:?}");
        }
        assert!(Store::open_if_there(&path).is_err(), "{length}");
        let found = damage(&path);
        assert!(matches!(found, Ok(Some(Damage::File)) | Err(StoreError::Corrupt { .. })), "{length}: {found:?}");
        assert!(fs_err::read(&path).unwrap() == cut, "{length}: it is left as it was");
    }
    for length in [0, 1, 2, 511, 512] {
        fs_err::write(&path, &whole[..length]).unwrap();
        assert_eq!(table(&rebuilt(&path), "goals").from_backup, GOALS / 2, "{length}");
        assert_eq!(sessions(&path).len(), GOALS / 2, "{length}");
    }
}

#[test]
fn a_cut_store_without_a_backup_is_refused_and_left_alone() {
    let (world, path) = store_with_backup();
    drop(world.store);
    fs_err::remove_dir_all(backups_dir(&path)).unwrap();
    let whole = fs_err::read(&path).unwrap();
    for length in 1..=512 {
        fs_err::write(&path, &whole[..length]).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Corrupt { .. })), "{length}");
    }
    for length in [1, 2, 511, 512] {
        fs_err::write(&path, &whole[..length]).unwrap();
        assert!(matches!(run(&path), Err(StoreError::Corrupt { .. })), "{length}");
        assert!(fs_err::read(&path).unwrap() == whole[..length], "{length}");
    }
}

#[test]
fn the_backup_of_a_migration_is_a_sign_of_a_store() {
    let (world, path) = store_with_backup();
    drop(world.store);
    let backup = backups(&path)[0].path.clone();
    fs_err::rename(backup, beside(&path, "v5.bak")).unwrap();
    fs_err::write(&path, "").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Corrupt { .. })));
    assert_eq!(table(&rebuilt(&path), "goals").from_backup, GOALS / 2);
}
